#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace mpi4dl {

/// Says that something failed while running; the program ends with exit code 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Says that the user asked for something impossible; the program ends with exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Throws UsageError with one sentence: what is wrong, what was given, what would be right.
template <typename... Args>
void validate(bool ok, fmt::format_string<Args...> sentence, Args&&... args) {
  if (!ok) throw UsageError(fmt::format(sentence, std::forward<Args>(args)...));
}

/// Throws Error where a promise between parts of the program or from the system is broken.
template <typename... Args>
void ensure(bool ok, fmt::format_string<Args...> sentence, Args&&... args) {
  if (!ok) throw Error(fmt::format(sentence, std::forward<Args>(args)...));
}

}  // namespace mpi4dl
