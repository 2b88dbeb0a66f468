#pragma once

#include <cstdint>
#include <string>

#include "graph/operators.hpp"

namespace mpi4dl {

/// Holds everything a model's definition may depend on; each model reads what concerns it.
struct ModelOptions {
  std::string name = "resnet";
  int64_t channels = 3;
  Extents image = {32, 32};
  int64_t classes = 10;
  double dropout = 0;  ///< of what the last layer reads

  // ResNet
  int resnet_version = 2;  ///< 1: depth 6n+2; 2: depth 9n+2
  int depth = 110;
  bool global_pool_head = false;  ///< parameters that do not depend on the size of the image

  // AmoebaNet-D
  int num_layers = 18;  ///< normal cells, a multiple of 3
  int64_t num_filters = 416;
};

/// Returns the valid values around a wrong one, where those are first, first + step, ...: "92 and
/// 101".
std::string nearest_valid(int64_t wrong, int64_t first, int64_t step);

}  // namespace mpi4dl
