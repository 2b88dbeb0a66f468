#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "geometry/box.hpp"
#include "geometry/grid.hpp"
#include "graph/graph.hpp"

namespace mpi4dl {

/// Where halos are exchanged.
struct HaloDesign {
  /// false, design 1: before every operator that reads neighbouring pixels. true, design 2: once
  /// for each run of `fused_layers` cells, whose operators then compute redundant margins; before
  /// the first that reads neighbouring pixels, unless fewer values cross the border of the run.
  bool fused = false;
  int fused_layers = 1;
};

/// A run of cells, [first, last).
struct CellRange {
  int first = 0;
  int last = 0;
};

/// `reader` reads `from` as its input number `input`.
struct Edge {
  int from, reader, input;
};

/// Where one value of the graph lives on each rank of the stage.
struct ValuePlan {
  /// In one place only: the first tile of each batch part. So are values without spatial extent,
  /// and a parameter-free tail (the pooling before a flatten) that is smaller than the grid.
  bool joined = false;
  std::vector<Box> owned;     ///< a partition of the value
  std::vector<Box> computed;  ///< what each rank computes (or, of a stage input, is given)
  /// What operators read after an exchange; empty where there is none. Owners fill it.
  std::vector<Box> extended;
  /// The memory of `extended`: around it lies the zero padding that convolutions read, outside the
  /// image.
  std::vector<Box> room;
  /// Whether anybody reads what was computed, rather than what was exchanged.
  bool read_locally = false;
  /// The nodes that make this value in one pass over memory, itself the last: perhaps a batch norm
  /// or convolution, the sum with something else, a ReLU. Nobody else reads those in between.
  std::vector<int> pass;
  /// What such a pass reads: the inputs of its first node, then what is added.
  std::vector<Edge> reads;
  /// Of a value in between: it has no memory of its own.
  bool runs_in_reader = false;
  /// Only convolutions read this ReLU of a batch norm: they need it again backward, where it is
  /// made again from the batch norm's input, instead of being kept.
  bool remade = false;

  bool exchanged() const { return !extended.empty(); }
  /// True where `rank` computes straight into the room, so that only the halo is moved.
  bool computed_in_room(int rank) const {
    return exchanged() && !read_locally && !owned[rank].empty() && computed[rank] == owned[rank] &&
           extended[rank].contains(owned[rank]);
  }
};

/// What one rank of a stage does in a training step, by arithmetic alone.
struct RankCost {
  int64_t flops = 0;            ///< forward, margins included
  int64_t redundant_flops = 0;  ///< of these, on pixels that other ranks own
  int64_t messages = 0;         ///< sent, forward and backward
  int64_t elements_sent = 0;
};

/// Bounds inference over the cells of one stage: which pixels each rank computes and what it must
/// receive.
///
/// The walk goes backwards from what a rank owns and asks each operator what it needs. On an edge
/// with an exchange the producer computes only what it owns; without one, it computes what is
/// needed. Skips, strides, even kernels, uneven tiles and halos over several tiles need no case of
/// their own. Stage inputs (the image, or values from earlier stages) arrive as needed, margins
/// included, so they are never exchanged.
class StagePlan {
 public:
  StagePlan(const Graph& graph, const Grid& grid, int64_t batch, const HaloDesign& design,
            CellRange cells);
  /// All cells in one stage.
  StagePlan(const Graph& graph, const Grid& grid, int64_t batch, const HaloDesign& design);

  const Graph& graph() const { return *graph_; }
  const Grid& grid() const { return grid_; }
  int64_t batch() const { return batch_; }
  CellRange cells() const { return cells_; }

  /// Nodes that this stage runs, in order.
  const std::vector<int>& nodes() const { return nodes_; }
  /// Values that this stage reads but does not make: the image, or results of earlier stages.
  const std::vector<int>& inputs() const { return inputs_; }
  /// Values that later stages read, or the graph's output.
  const std::vector<int>& outputs() const { return outputs_; }
  bool runs(int node) const;

  const ValuePlan& value(int node) const { return values_[node]; }
  /// The shape of a value with its batch axis.
  std::vector<int64_t> full_shape(int node) const;

  /// The node whose operator and parameters make this value: the first of its pass.
  int work(int node) const { return values_[node].pass.front(); }
  /// Whether a ReLU, which is not all of it, ends the pass that makes this value.
  bool ends_with_relu(int node) const;
  /// True where `rank` lets go of this value after forward and makes it again for backward.
  bool remade(int node, int rank) const;

  /// True where `consumer` reads the exchanged copy of `producer`.
  bool reads_extended(int producer, int consumer) const;
  /// What `rank` reads of input number `input` to compute its box of `node`, inside the image.
  Box needed(int node, int input, int rank) const;

  RankCost cost(int rank) const;

 private:
  friend class BoundsInference;
  bool exchange_edge(int producer, int consumer) const;
  /// Nodes that share their exchanges; in design 1 each is for itself.
  int group(int node) const;

  const Graph* graph_;
  Grid grid_;
  int64_t batch_;
  HaloDesign design_;
  CellRange cells_;
  std::vector<int> nodes_, inputs_, outputs_;
  std::vector<ValuePlan> values_;
  /// By node: it reads what was exchanged for its group, directly or through others of the group.
  std::vector<bool> behind_exchange_;
};

/// One box per rank in the form that redistributions take.
std::vector<std::vector<Box>> one_box_each(const std::vector<Box>& boxes);

/// The pooled value as every tile that holds a part of `input` sees it: its partial sum, which
/// travels to the first tile of its batch part.
std::vector<Box> pooling_parts(const StagePlan& plan, int node);

}  // namespace mpi4dl
