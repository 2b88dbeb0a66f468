#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/position.hpp"
#include "storage/durable_file.hpp"
#include "storage/tensor_source.hpp"

namespace mpi4dl {

/// Maps some parameters of a model from a file to the names and shapes that they have in its
/// state_dict: several names, none, or another name or shape than their own.
using ExportedNames = std::map<std::string, std::map<std::string, std::vector<int64_t>>>;

/// Says of a checkpoint what it is, besides the values of its tensors.
struct Manifest {
  /// Each setting is a flag and its value.
  using Settings = std::map<std::string, std::string>;

  struct Tensor {
    std::string file;
    std::string key;  ///< its name in that file; older versions have other names
    TensorInfo info;
  };

  int64_t step = 0;                  ///< optimizer steps done since training began
  DataState data;                    ///< where it continues
  Settings must_match;               ///< what a run that resumes must be given again
  std::vector<std::string> classes;  ///< their names; none where they have numbers alone
  std::string model = {};  ///< the file that the model came from; empty: its name is a setting
  ExportedNames exported = {};
  std::map<std::string, Digest> files;
  std::map<std::string, Tensor> tensors;
};

/// Writes it as JSON, for people and programs.
std::string to_json(const Manifest& manifest);
/// Reads it, and gives the tensors of older versions the names of this one. Throws Error where the
/// text is not a manifest, or one of a later version.
Manifest manifest_from_json(const std::string& text);

}  // namespace mpi4dl
