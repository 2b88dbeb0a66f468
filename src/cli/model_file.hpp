#pragma once

#include <string>

#include "train/model.hpp"

namespace mpi4dl {

/// Returns the file beside a graph that has the values of what is never trained: "net.graph" has
/// "net.graph.safetensors".
std::string constants_file(const std::string& graph_file);

/// Returns whether a model is named by a file rather than by a name of its own.
bool is_model_file(const std::string& name);

/// Opens the file of a model: .graph, the text of a graph, .pt2, what torch.export saved, or .pt,
/// what torch.jit saved.
/// `size`: of its images; empty: what the file says. `cells`: about how many the model of a .pt2
/// gets; 0: as many as its modules suggest. Throws UsageError where there is no such file, or where
/// it is not sound.
Model open_model(const std::string& path, const Extents& size, int cells);

/// Returns whether images of another size need the file again: what Python has computed from the
/// size is in the graph.
bool is_for_one_size(const std::string& name);

}  // namespace mpi4dl
