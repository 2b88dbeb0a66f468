#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "execute/computed_weight.hpp"
#include "geometry/interval.hpp"
#include "graph/graph.hpp"

namespace mpi4dl {

class SharedMemory;

/// Holds the parameters of some nodes of a graph, the gradients of trained ones, and the statistics
/// that batch norms keep. Values depend on seed and name alone: every rank and layout starts from
/// the same ones.
///
/// A step adds to gradients and to sums of statistics, micro-batch by micro-batch; these are summed
/// over all ranks that hold the same parameters, and then used once. So neither depends on the
/// order of micro-batches or on who ran them.
///
/// A parameter that several nodes share exists once, with the first of them: backward comes to that
/// node last, so its gradient is complete when those of its cell are.
class Parameters {
 public:
  /// In `memory`, if there is any and the backend computes on the host, other ranks of the node can
  /// read the gradients.
  Parameters(const Graph& graph, const std::vector<int>& nodes, c10::ScalarType type, uint64_t seed,
             std::shared_ptr<const Backend> backend,
             const std::shared_ptr<SharedMemory>& memory = nullptr);

  const Backend& backend() const { return *backend_; }

  /// Returns the type of the values; sums have the wide type.
  c10::ScalarType type() const { return type_; }
  /// Computes the weights that depend on parameters; whoever has changed values calls it before
  /// the next forward.
  void compute_weights();
  /// Returns the values of a node's weights, as it lists them.
  const std::vector<at::Tensor>& of(int node) const { return values_[node]; }
  /// Returns what this step has added for each of them so far; undefined for frozen ones.
  const std::vector<at::Tensor>& sums_of(int node) const { return sums_[node]; }
  /// Adds to the gradients of the node's parameters that are no statistics, in order, unless they
  /// are undefined or the parameter is frozen.
  void add_gradients(int node, const std::vector<at::Tensor>& gradients);
  /// Adds what a batch norm measured over a number of images: one tensor for each of the node's
  /// statistics, in order.
  void add_statistics(int node, const std::vector<at::Tensor>& measured, int64_t images);
  /// Moves running statistics towards the mean of what was measured since the last clear().
  void update_statistics();
  /// Forgets gradients and measured statistics. Gradients become zero when they are begun.
  void clear();
  /// It must come before something is added to the gradients of a node: sets them to zero unless
  /// they were begun since the last clear(). So they are in the processor's cache when they are
  /// needed.
  void begin_gradients(int node);
  /// It must come before those of a cell are read, when nothing will be added any more: the
  /// gradients of computed weights go into those of parameters.
  void complete_gradients_of_cell(int cell);

  /// Returns all trained values one after the other, in the order of the gradients.
  const at::Tensor& value_memory() const { return trained_; }
  /// Returns what a step has added, as plain memory that the ranks which hold these parameters sum
  /// up: the gradients of the cells [first, last), which lie one after the other, and all
  /// statistics.
  const at::Tensor& gradient_memory() const { return gradients_; }
  at::Tensor gradient_memory(int first_cell, int last_cell) const;
  at::Tensor statistics_memory() const { return statistics_; }
  /// Returns where in that memory each trained one lies, in its order.
  std::vector<std::pair<std::string, Interval>> trained_ranges() const;
  /// Returns the cells of these parameters' nodes, in order.
  std::vector<int> cells() const;

  /// Returns tensors by name, in the order of the graph. Tensors share memory with this object.
  std::map<std::string, at::Tensor> trained() const { return by_name(trained_); }
  std::map<std::string, at::Tensor> gradients() const { return by_name(gradients_); }
  /// Returns views of other memory that has an element for each trained one.
  std::map<std::string, at::Tensor> by_name(const at::Tensor& memory) const;
  std::map<std::string, at::Tensor> statistics() const { return of_kind(ParameterKind::statistic); }
  std::map<std::string, at::Tensor> frozen() const { return of_kind(ParameterKind::frozen); }

 private:
  /// Entry is a parameter of one or more nodes.
  struct Entry {
    Parameter parameter;
    int node = 0;                     // the first that has it
    at::Tensor value = {}, sum = {};  // sum: of gradients, or of what was measured
    Interval range = {};              // of its gradient, among all
    bool begun = true;                // its gradient
  };
  void find_entries(uint64_t seed);
  void place_values();
  void place_sums(const std::shared_ptr<SharedMemory>& memory);
  void find_computed();
  void list_weights(int node);
  size_t entry_of(int node, const std::string& name) const;
  void begin(Entry& entry);
  std::map<std::string, at::Tensor> of_kind(ParameterKind kind) const;

  const Graph* graph_;
  std::vector<int> nodes_;
  c10::ScalarType type_;
  std::shared_ptr<const Backend> backend_;
  /// Computed is a computed weight of one or more nodes.
  struct Computed {
    int node;                     // the first that has it
    std::vector<size_t> entries;  // those of its parameters
    ComputedWeight weight;
  };
  std::vector<Entry> entries_;                          // cell after cell
  std::vector<Computed> computed_;                      // node after node
  std::vector<std::vector<size_t>> entries_of_;         // by node
  std::vector<std::vector<size_t>> computed_of_;        // by node
  std::vector<std::vector<at::Tensor>> values_, sums_;  // by node: those of its weights
  at::Tensor trained_;                                  // all trained values, cell after cell
  at::Tensor gradients_, statistics_;                   // all sums of this kind, cell after cell
  std::vector<int64_t> first_gradient_;                 // of each cell of the graph, and the end
  std::vector<at::Tensor> images_;  // by node: of how many images the statistics are
};

}  // namespace mpi4dl
