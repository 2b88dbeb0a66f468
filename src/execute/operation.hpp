#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "exchange/patch.hpp"
#include "graph/graph.hpp"

namespace mpi4dl {

class Redistribution;

/// Holds what all operators of one run of a stage share.
struct RunContext {
  const Backend* backend = nullptr;  ///< of the stage's tensors
  bool training = true;
  bool backward = true;       ///< will follow: keep what it needs
  uint64_t dropout_seed = 0;  ///< of this step: the same for every rank, micro-batch and direction
  /// Says which places of the effective batch this micro-batch's images have; empty: from 0 on.
  std::vector<int64_t> images = {};
  /// Receives the first cell whose values are not finite, if this run inspects them; null: it does
  /// not.
  std::optional<int>* first_bad_cell = nullptr;
  /// Connects the ranks whose pixels a batch norm's statistics cover; null: each rank is alone.
  const Communicator* statistics = nullptr;
  /// Connects the ranks that hold parts of the same images.
  const Communicator* tiles = nullptr;
};

/// TileRun is one operator on this rank's box: what it reads, with margins but without padding, and
/// what it must compute. Boxes are in global coordinates; a rank may have nothing to compute.
struct TileRun {
  const RunContext& context;
  const Graph& graph;
  int id;
  std::vector<Patch> inputs;
  /// Holds for each input the memory that it lies in, with zeros where that reaches beyond the
  /// image; empty where there is none but its own.
  std::vector<Patch> halo_buffers;
  at::Tensor target;  ///< where the output should go, if it can; undefined: new memory
  Box output;         ///< to compute
  Box owned;          ///< the part of it that this rank owns
  std::vector<at::Tensor> parameters;  ///< as listed in the node
  /// Holds what the step has added up of their gradients so far, to which a tape may add its own;
  /// undefined for frozen ones.
  std::vector<at::Tensor> gradient_sums;
  const Redistribution* pooling;  ///< of a pooling to whose result each tile contributes
  Box pooled_part;                ///< what this rank contributes to
  Interval images;                ///< of the micro-batch that this rank works on, pixels or not
  Patch residual = {};            ///< of a batch norm or convolution: is added to what it makes
  bool relu = false;              ///< of a batch norm: a ReLU ends its fused group
  /// Waits for the halo of a convolution's input. It is set where that is on its way and takes time
  /// (between nodes); then so does the way back, and the gradient of the input should come first.
  std::function<void()> await_halo = {};
  Box there = {};  ///< the part of that input which needs no waiting

  const Node& node() const { return graph.node(id); }
  const Backend& backend() const { return *context.backend; }
  /// Returns false for a frozen parameter, whose gradient nobody wants.
  bool trains(size_t parameter) const { return gradient_sums[parameter].defined(); }
};

struct Gradients {
  std::vector<at::Tensor> inputs;  ///< with the boxes of TileRun::inputs, and of its residual
  /// Holds those of all parameters but statistics, in order; undefined where nothing is to be
  /// added.
  std::vector<at::Tensor> parameters;
  /// Makes those of the parameters while that of the input travels, where it is set.
  std::function<std::vector<at::Tensor>()> parameters_later = {};
};

/// Keeps what backward needs of one run. Every rank runs its operators in the same order, forward
/// and backward, so operators may be collective.
class Tape {
 public:
  virtual ~Tape() = default;
  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  /// Takes the gradient with respect to the output, over its whole box. It is called once.
  virtual Gradients backward(const at::Tensor& gradient) = 0;
};

struct TileResult {
  at::Tensor output;
  std::unique_ptr<Tape> tape;
  std::vector<at::Tensor> statistics = {};  ///< what a batch norm measured: mean, variance
  std::function<void()> rematerialise =
      {};  ///< writes the output once more, where that is possible
};

/// Returns true where nobody else has the memory of this tensor, so that it may be overwritten.
bool sole_owner(const at::Tensor& tensor);

/// Returns a result whose backward is a single formula.
TileResult with_backward(at::Tensor output,
                         std::function<Gradients(const at::Tensor& gradient)> backward);

/// Runs one kind of operator on this rank's box. Each is specialised in the file of its name under
/// execute/operators/; one that is not does not link.
template <typename Op>
TileResult run_tile(const Op& op, const TileRun& run);

/// Runs the operator of a node on this rank's box.
TileResult run(const TileRun& run);

}  // namespace mpi4dl
