#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/tensor_source.hpp"
#include "train/model.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// Opens the weights in a file of Python's torch.save, a safetensors file, a checkpoint, or the
/// newest checkpoint of a folder; which of them it is, the file itself tells. Throws UsageError
/// where it is none of them.
std::unique_ptr<TensorSource> open_weights(const std::string& path);

/// Returns what the classes of these weights are called, if it is a checkpoint that knows; none
/// without a path.
std::vector<std::string> class_names(const std::string& path);

/// Returns whether a tensor of this name belongs to a model. The state of an optimizer does not,
/// nor the number of batches that Python's batch norm counts.
bool is_weight(const std::string& name);

/// Throws UsageError, naming the first difference, where these are not the weights of this model,
/// but for its parameters that start anew. What else the model's own file has may be there.
void check_weights(const TensorSource& weights, const std::string& path, const Model& model);

/// Copies one tensor, if it has the right shape; its type may be another.
void copy_tensor(const TensorSource& source, const std::string& name, const at::Tensor& to);

/// Reads weights into parameters and statistics, but for those that start anew; each rank those of
/// the stages that it holds. Without a path, they are those of the model's file. What weights need
/// not have, such as a constant of forward, is always that of the model's file. Collective.
void load_weights(const std::string& path, const Model& model,
                  const std::map<int, std::unique_ptr<Parameters>>& parameters,
                  const Communicator& world);
/// Reads weights that training starts from. Collective.
void load_weights(const std::string& path, const Model& model, Trainer& trainer,
                  const Communicator& world);

/// Returns the weights under all of their names, as a file of the model would have them: in float32
/// or float64, and what it carries as it was.
TensorMap all_weights(const TensorSource& source);

/// Has a model take along what these weights have and a model's file would carry: the number of
/// batches that Python's batch norm counts, and what a checkpoint carries.
void carry_along(const std::string& path, Model& model);

}  // namespace mpi4dl
