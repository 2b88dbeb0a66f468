#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "geometry/interval.hpp"
#include "graph/graph.hpp"

namespace mpi4dl {

class SharedMemory;

/// The parameters of some nodes of a graph, their gradients, and the statistics that batch norms
/// keep. Values depend on seed and name alone: every rank and layout starts from the same ones.
///
/// A step adds to gradients and to sums of statistics, micro-batch by micro-batch; these are summed
/// over all ranks that hold the same parameters, and then used once. So neither depends on the
/// order of micro-batches or on who ran them.
class Parameters {
 public:
  /// In `memory`, if there is any, other ranks of the node can read the gradients.
  Parameters(const Graph& graph, const std::vector<int>& nodes, c10::ScalarType type, uint64_t seed,
             const std::shared_ptr<SharedMemory>& memory = nullptr);

  /// Of the values; sums have the wide type.
  c10::ScalarType type() const { return type_; }
  /// As listed in the node.
  const std::vector<at::Tensor>& of(int node) const { return values_[node]; }
  /// What this step has added for each of them so far.
  const std::vector<at::Tensor>& sums_of(int node) const { return sums_[node]; }
  /// Adds to the gradients of the node's trainable parameters, in order, unless undefined.
  void add_gradients(int node, const std::vector<at::Tensor>& gradients);
  /// Adds what a batch norm measured over a number of images: one tensor for each of the node's
  /// statistics, in order.
  void add_statistics(int node, const std::vector<at::Tensor>& measured, int64_t images);
  /// Moves running statistics towards the mean of what was measured since the last clear().
  void update_statistics();
  /// Forgets gradients and measured statistics. Gradients become zero when they are begun.
  void clear();
  /// Must come before something is added to the gradients of a node, and before those of a cell are
  /// read: sets them to zero unless they were begun since the last clear(). So they are in the
  /// processor's cache when they are needed.
  void begin_gradients(int node);
  void begin_gradients_of_cell(int cell);

  /// All trainable values one after the other, in the order of the gradients.
  const at::Tensor& value_memory() const { return trained_; }
  /// What a step has added, as plain memory that the ranks which hold these parameters sum up: the
  /// gradients of the cells [first, last), which lie one after the other, and all statistics.
  const at::Tensor& gradient_memory() const { return gradients_; }
  at::Tensor gradient_memory(int first_cell, int last_cell) const;
  at::Tensor statistics_memory() const { return statistics_; }
  /// The cells of these parameters' nodes, in order.
  std::vector<int> cells() const;

  /// By name, in the order of the graph. Tensors share memory with this object.
  std::map<std::string, at::Tensor> trainable() const { return by_name(trained_); }
  std::map<std::string, at::Tensor> gradients() const { return by_name(gradients_); }
  /// Views of other memory that has a number for each trainable one.
  std::map<std::string, at::Tensor> by_name(const at::Tensor& memory) const;
  std::map<std::string, at::Tensor> statistics() const;

 private:
  template <typename Visit>
  void each(Visit&& visit) const;
  void place_values();
  void place_sums(const std::shared_ptr<SharedMemory>& memory);

  const Graph* graph_;
  std::vector<int> nodes_;
  c10::ScalarType type_;
  std::vector<std::vector<at::Tensor>> values_;  // by node
  at::Tensor trained_;                           // all trainable values, cell after cell
  at::Tensor gradients_, statistics_;            // all sums of this kind, cell after cell
  std::vector<int64_t> first_gradient_;          // of each cell of the graph, and the end
  std::vector<std::vector<at::Tensor>> sums_;    // by node: views of the two
  std::vector<Interval> gradient_range_;         // by node
  std::vector<bool> begun_;                      // by node: its gradients
  std::vector<at::Tensor> images_;               // by node: of how many images the statistics are
};

}  // namespace mpi4dl
