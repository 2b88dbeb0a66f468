#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "storage/tensor_source.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// The weights in a file of Python's torch.save, a safetensors file, a checkpoint, or the newest
/// checkpoint of a folder; which of them it is, the file itself tells. Throws UsageError where it
/// is none of them.
std::unique_ptr<TensorSource> open_weights(const std::string& path);

/// What the classes of these weights are called: a checkpoint may know it.
std::vector<std::string> class_names(const std::string& path);

/// Whether a tensor of this name belongs to a model. What an optimizer remembers does not, nor the
/// number of batches that Python's batch norm counts.
bool is_weight(const std::string& name);

/// Throws UsageError, naming the first difference, where these are not the weights of this model.
void check_weights(const TensorSource& weights, const std::string& path, const Graph& graph);

/// Copies one tensor, if it has the right shape; its type may be another.
void copy_tensor(const TensorSource& source, const std::string& name, const at::Tensor& to);

/// Reads weights into parameters and statistics; each rank those of the stages that it holds.
/// Collective.
void load_weights(const std::string& path, const Graph& graph,
                  const std::map<int, std::unique_ptr<Parameters>>& parameters,
                  const Communicator& world);
/// The same for training, which starts from them. Collective.
void load_weights(const std::string& path, Trainer& trainer, const Communicator& world);

}  // namespace mpi4dl
