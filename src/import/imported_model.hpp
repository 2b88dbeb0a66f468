#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "storage/tensor_source.hpp"

namespace mpi4dl {

struct ImportOptions {
  Extents image;  ///< height and width, or depth, height and width
  int cells = 0;  ///< about so many; 0: as many as modules and their work suggest
};

/// Is a PyTorch model as a graph, with the weights that it starts from.
struct ImportedModel {
  Graph graph;
  /// Reads values by the names of the graph's parameters, in the shapes that these have.
  std::shared_ptr<TensorSource> weights = {};
  /// Reads values by all names and in all shapes that the model's state_dict has.
  std::shared_ptr<TensorSource> state = {};
  /// Holds the names in the state_dict of those parameters that have other ones than their own:
  /// several for a tensor with several names, none for one that is not in it.
  std::map<std::string, std::vector<std::string>> aliases = {};
  /// Names tensors of the state_dict that no node reads, to be exported unchanged.
  std::vector<std::string> carried = {};
  /// Says what a user should know, in sentences.
  std::vector<std::string> notes = {};
};

/// Returns whether a file is one of TorchScript, by its name: .pt or .pth.
bool is_torchscript(const std::string& path);

/// Imports what torch.export.save wrote, or a TorchScript module's save. Throws UsageError that
/// tells all that cannot be imported.
ImportedModel import_model(const std::string& path, const ImportOptions& options);

/// Returns the height and width (or depth, height and width) of the image with which a model was
/// exported; -1 for an axis of any length, and where a file does not say so, as one of TorchScript.
Extents exported_image_size(const std::string& path);

}  // namespace mpi4dl
