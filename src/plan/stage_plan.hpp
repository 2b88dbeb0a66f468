#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "geometry/box.hpp"
#include "geometry/grid.hpp"
#include "graph/graph.hpp"

namespace mpi4dl {

/// Says where halos are exchanged.
struct HaloDesign {
  /// Chooses design 1 (false), an exchange before every operator that reads neighbouring pixels, or
  /// design 2 (true): one for each run of `fused_layers` cells, whose operators then compute
  /// redundant margins; before the first that reads neighbouring pixels, unless fewer values cross
  /// the border of the run.
  bool fused = false;
  int fused_layers = 1;
};

/// CellRange is a run of cells, [first, last).
struct CellRange {
  int first = 0;
  int last = 0;
};

/// `reader` reads `from` as its input number `input`.
struct Edge {
  int from, reader, input;
};

/// Says where one value of the graph lives on each rank of the stage.
struct ValuePlan {
  /// Says whether the value is in one place, the first tile of each batch part: one without spatial
  /// extent, or a map with fewer rows or columns than the grid.
  bool joined = false;
  std::vector<Box> owned;     ///< a partition of the value
  std::vector<Box> computed;  ///< what each rank computes (or, of a stage input, is given)
  /// Says what operators read after an exchange; empty where there is none. Owners fill it.
  std::vector<Box> extended;
  /// Has the place of the halo buffer: `extended`, and around it the zero padding that convolutions
  /// read outside the image.
  std::vector<Box> padded;
  /// Says whether anybody reads what was computed, rather than what was exchanged.
  bool read_locally = false;
  /// Lists the fused group that makes this value in one sweep over memory, itself the last: perhaps
  /// a batch norm or convolution, the sum with a residual, a ReLU. Nobody else reads those in
  /// between.
  std::vector<int> fused;
  /// Lists what the group reads: the inputs of its first node, then the residual.
  std::vector<Edge> reads;
  /// Says whether it is a value in between, which has no memory of its own.
  bool fused_into_consumer = false;
  /// Says whether it is a batch norm's ReLU that only convolutions read: they need it again
  /// backward, where it is rematerialised from the batch norm's input, instead of being kept.
  bool rematerialised = false;

  bool exchanged() const { return !extended.empty(); }
  /// Returns true where `rank` computes straight into the halo buffer, so that only the halo is
  /// moved.
  bool computed_in_halo_buffer(int rank) const {
    return exchanged() && !read_locally && !owned[rank].empty() && computed[rank] == owned[rank] &&
           extended[rank].contains(owned[rank]);
  }
};

/// Counts what one rank of a stage does in a training step, by arithmetic alone.
struct RankCost {
  int64_t flops = 0;            ///< forward, margins included
  int64_t redundant_flops = 0;  ///< of these, on pixels that other ranks own
  int64_t lonely_flops = 0;     ///< of these, on maps too small for the other tiles
  int64_t messages = 0;         ///< sent, forward and backward
  int64_t elements_sent = 0;
};

/// Plans the cells of one stage by bounds inference: which pixels each rank computes and what it
/// must receive.
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
  /// Plans all cells as one stage.
  StagePlan(const Graph& graph, const Grid& grid, int64_t batch, const HaloDesign& design);

  const Graph& graph() const { return *graph_; }
  const Grid& grid() const { return grid_; }
  int64_t batch() const { return batch_; }
  CellRange cells() const { return cells_; }

  /// Lists the nodes that this stage runs, in order.
  const std::vector<int>& nodes() const { return nodes_; }
  /// Lists the values that this stage reads but does not make: the image, or results of earlier
  /// stages.
  const std::vector<int>& inputs() const { return inputs_; }
  /// Lists the values that later stages read, or the graph's output.
  const std::vector<int>& outputs() const { return outputs_; }
  bool runs(int node) const;
  /// Returns whether each tile contributes a part to this value, from the pixels that it owns.
  bool pools(int node) const;

  const ValuePlan& value(int node) const { return values_[node]; }
  /// Returns the shape of a value with its batch axis.
  std::vector<int64_t> full_shape(int node) const;

  /// Returns the node whose operator and parameters make this value: the first of its fused group.
  int anchor(int node) const { return values_[node].fused.front(); }
  /// Returns whether a ReLU, which is not all of it, ends the fused group that makes this value.
  bool ends_with_relu(int node) const;
  /// Returns true where `rank` releases this value after forward and rematerialises it for
  /// backward.
  bool rematerialised(int node, int rank) const;

  /// Returns true where `consumer` reads the exchanged copy of `producer`.
  bool reads_extended(int producer, int consumer) const;
  /// Returns what `rank` reads of input number `input` to compute its box of `node`, inside the
  /// image.
  Box needed(int node, int input, int rank) const;

  RankCost cost(int rank) const;

 private:
  friend class BoundsInference;
  bool exchange_edge(int producer, int consumer) const;
  /// Counts what a rank must do of a node, be margins as they may.
  int64_t own_flops(int node, int rank) const;
  /// Numbers the runs of nodes that share their exchanges; in design 1 each node is for itself.
  int group(int node) const;

  const Graph* graph_;
  Grid grid_;
  int64_t batch_;
  HaloDesign design_;
  CellRange cells_;
  std::vector<int> nodes_, inputs_, outputs_;
  std::vector<ValuePlan> values_;
  /// Says of each node whether it reads what was exchanged for its group, directly or through
  /// others.
  std::vector<bool> behind_exchange_;
};

/// Returns one box per rank in the form that redistributions take.
std::vector<std::vector<Box>> one_box_each(const std::vector<Box>& boxes);

/// Returns the boxes of a pooled value to which each tile contributes: all that read a pixel of
/// its own, of all channels. They travel to the first tile of its batch part.
std::vector<Box> pooling_parts(const StagePlan& plan, int node);

}  // namespace mpi4dl
