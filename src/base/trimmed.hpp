#pragma once

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>

namespace mpi4dl {

/// Returns the text without blanks at its ends.
inline std::string trimmed(const std::string& text) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  const auto begin = std::find_if_not(text.begin(), text.end(), blank);
  const auto end = std::find_if_not(text.rbegin(), std::make_reverse_iterator(begin), blank);
  return {begin, end.base()};
}

}  // namespace mpi4dl
