#pragma once

#include <cstdint>
#include <string>

namespace mpi4dl {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

/// Reads "512", which is square, or "512x768", which is height x width. Throws UsageError that
/// names the flag.
ImageSize parse_image_size(const std::string& flag, const std::string& text);

}  // namespace mpi4dl
