#pragma once

#include <cstdint>
#include <string>

namespace mpi4dl {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

/// "512" is square, "512x768" is height x width.
ImageSize parse_image_size(const std::string& text);

}  // namespace mpi4dl
