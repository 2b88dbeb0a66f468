#pragma once

#include <string_view>

namespace mpi4dl {

/// Some editors write this mark at the beginning of a file.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Returns whether a text is well-formed UTF-8, as JSON wants it.
inline bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    const unsigned first = byte(i);
    const size_t length = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (length == 0) return false;
    for (size_t at = i + 1; at < i + length; ++at)
      if (byte(at) >> 6 != 0b10) return false;
    // Neither longer than it must be, nor a surrogate, nor beyond the last character.
    const unsigned second = byte(i + 1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90))
      return false;
    i += length;
  }
  return true;
}

}  // namespace mpi4dl
