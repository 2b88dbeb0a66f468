#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/position.hpp"
#include "storage/durable_file.hpp"
#include "storage/tensor_source.hpp"

namespace mpi4dl {

/// What a checkpoint says of itself besides the values of its tensors.
struct Manifest {
  /// A flag and its value.
  using Settings = std::map<std::string, std::string>;

  struct Tensor {
    std::string file;
    TensorInfo info;
  };

  int64_t step = 0;                  ///< optimizer steps done since training began
  DataState data;                    ///< where it goes on
  Settings must_match;               ///< what a run that goes on must be given again
  std::vector<std::string> classes;  ///< their names; none where they have numbers alone
  std::map<std::string, Digest> files;
  std::map<std::string, Tensor> tensors;
};

/// As JSON, for people and programs.
std::string to_json(const Manifest& manifest);
/// Throws Error where the text is not a manifest, or one of a later version.
Manifest manifest_from_json(const std::string& text);

}  // namespace mpi4dl
