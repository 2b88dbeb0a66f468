#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "graph/graph.hpp"

namespace mpi4dl {

/// The parameters of some nodes of a graph, their gradients, and the statistics that batch norms
/// keep. Values depend on seed and name alone: every rank and layout starts from the same ones.
class Parameters {
 public:
  Parameters(const Graph& graph, const std::vector<int>& nodes, c10::ScalarType type,
             uint64_t seed);

  /// As listed in the node.
  const std::vector<at::Tensor>& of(int node) const { return values_[node]; }
  /// Adds to the gradients of the node's trainable parameters, in order; undefined ones are zero.
  void add_gradients(int node, const std::vector<at::Tensor>& gradients);
  void clear_gradients();
  /// Sums gradients over the ranks. Collective.
  void reduce_gradients(const Communicator& ranks);

  /// By name, in the order of the graph. Tensors share memory with this object.
  std::map<std::string, at::Tensor> trainable() const;
  std::map<std::string, at::Tensor> gradients() const;
  std::map<std::string, at::Tensor> statistics() const;

 private:
  template <typename Visit>
  void each(Visit&& visit) const;

  const Graph* graph_;
  std::vector<int> nodes_;
  std::vector<std::vector<at::Tensor>> values_, gradients_;  // by node
};

}  // namespace mpi4dl
