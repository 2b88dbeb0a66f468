#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "graph/graph.hpp"

namespace mpi4dl::testing {

/// Returns the output of a graph by libtorch alone: whole tensors, differentiable, nothing of ours
/// but the options. `parameters` has all of them by name, running statistics included; training
/// updates these in place. It has no dropout in training: libtorch draws other random numbers.
at::Tensor evaluate_whole(const Graph& graph, const at::Tensor& image,
                          const std::map<std::string, at::Tensor>& parameters, bool training);

}  // namespace mpi4dl::testing
