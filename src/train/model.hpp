#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "train/checkpoint.hpp"

namespace mpi4dl {

/// Model is a graph, and what belongs to it where it came from a file.
struct Model {
  std::string name;  ///< of a model that comes with mpi4dl, or the file
  Graph graph;
  bool own = false;  ///< the graph came from a file, and a checkpoint has to keep it
  /// Has the parameters that training starts from; null where the file has none.
  std::shared_ptr<const TensorSource> weights = nullptr;
  /// Has parameters that are never trained, which weights may lack, and what they may have besides;
  /// null where the file has none.
  std::shared_ptr<const TensorSource> constants = nullptr;
  ExportedNames exported = {};
  /// Has what is carried, and names it: tensors that are no parameters, to be taken along.
  std::shared_ptr<const TensorSource> state = nullptr;
  std::vector<std::string> carried = {};
  std::vector<std::string> notes = {};  ///< what a user should know, in sentences
  std::set<std::string> fresh = {};     ///< parameters that start anew, whatever a file has
  std::set<std::string> resized = {};   ///< those that start anew where a file's have another shape

  /// Returns the height and width of its images.
  const Extents& image() const { return graph.shape(graph.input()).space; }
  int64_t classes() const { return graph.node(graph.output()).shape.channels; }
  /// Reads what is carried, under its plain names.
  TensorMap carried_tensors() const;
};

/// Returns the checkpoint at a path, or the newest in a folder of checkpoints, if it holds the
/// graph of its model; an empty string where it does not, or cannot be read.
std::string checkpoint_with_graph(const std::string& path);

/// Returns the model of a checkpoint that holds its graph.
Model model_of(const std::string& checkpoint);

}  // namespace mpi4dl
