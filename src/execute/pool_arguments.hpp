#pragma once

#include <cstdint>
#include <vector>

#include "geometry/window.hpp"

namespace mpi4dl {

/// Holds the options of a pooling per axis, as libtorch takes them.
struct PoolArguments {
  std::vector<int64_t> kernel, stride, dilation, no_padding;

  explicit PoolArguments(const std::vector<Window>& windows) : no_padding(windows.size(), 0) {
    for (const Window& window : windows) {
      kernel.push_back(window.kernel);
      stride.push_back(window.stride);
      dilation.push_back(window.dilation);
    }
  }
  bool volume() const { return kernel.size() == 3; }
};

}  // namespace mpi4dl
