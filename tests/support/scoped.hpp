#pragma once

#include <utility>

namespace mpi4dl::testing {

/// Gives a setting another value until the end of the scope.
template <typename T>
class Scoped {
 public:
  Scoped(T& setting, T value)
      : setting_(setting), before_(std::exchange(setting, std::move(value))) {}
  ~Scoped() { setting_ = before_; }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& setting_;
  T before_;
};

}  // namespace mpi4dl::testing
