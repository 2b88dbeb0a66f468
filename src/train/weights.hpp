#pragma once

#include <memory>

#include "graph/graph.hpp"
#include "storage/tensor_source.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// The weights in a file of Python's torch.save, a safetensors file, a checkpoint, or the newest
/// checkpoint of a folder; which of them it is, the file itself tells. Throws UsageError where it
/// is none of them.
std::unique_ptr<TensorSource> open_weights(const std::string& path);

/// Throws UsageError, naming the first difference, where these are not the weights of this model.
/// What an optimizer remembers may be there, and is of no interest.
void check_weights(const TensorSource& weights, const std::string& path, const Graph& graph);

/// Copies one tensor, if it has the right shape; its type may be another.
void copy_tensor(const TensorSource& source, const std::string& name, const at::Tensor& to);

/// Reads what this rank holds of each stage into these tensors, parameters and statistics.
/// Collective.
void load_weights(const std::string& path, const Graph& graph, const std::map<int, TensorMap>& held,
                  const Communicator& world);

/// Starts from these weights: each rank reads those that it holds. Collective.
void load_weights(const std::string& path, Trainer& trainer, const Communicator& world);

}  // namespace mpi4dl
