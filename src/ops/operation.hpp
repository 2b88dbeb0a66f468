#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "exchange/patch.hpp"
#include "graph/graph.hpp"

namespace mpi4dl {

class Redistribution;

/// What all operators of one run of a stage share.
struct RunContext {
  bool training = true;
  bool backward = true;       ///< will follow: keep what it needs
  uint64_t dropout_seed = 0;  ///< of this step: the same for every rank, micro-batch and direction
  /// The places of this micro-batch's images in the effective batch; empty: from 0 on.
  std::vector<int64_t> images = {};
  /// Where an inspection notes the first cell whose values are not finite; null: no inspection.
  std::optional<int>* first_bad_cell = nullptr;
  /// Ranks whose pixels a batch norm's statistics cover; null: each rank alone.
  const Communicator* statistics = nullptr;
  /// Ranks that hold parts of the same images.
  const Communicator* tiles = nullptr;
};

/// One operator on this rank's box: what it reads, with margins but without padding, and what it
/// must compute. Boxes are in global coordinates; a rank may have nothing to compute.
struct TileRun {
  const RunContext& context;
  const Graph& graph;
  int id;
  std::vector<Patch> inputs;
  /// For each input the memory that it lies in, with zeros where it reaches beyond the image; empty
  /// where there is none but its own.
  std::vector<Patch> rooms;
  at::Tensor target;  ///< where the output should go, if it can; undefined: new memory
  Box output;         ///< to compute
  Box owned;          ///< the part of it that this rank owns
  std::vector<at::Tensor> parameters;  ///< as listed in the node
  /// What the step has added up of their gradients so far: a tape may add its own.
  std::vector<at::Tensor> gradient_sums;
  const Redistribution* pooling;  ///< of a global pooling
  Patch addend = {};              ///< of a batch norm or convolution: is added to what it makes
  bool relu = false;              ///< of a batch norm: a ReLU ends its pass
  /// While the halo of a convolution's input is on its way: waits for it. Set where that takes time
  /// (between nodes), and then so does the way back: the gradient of the input should come first.
  std::function<void()> await_halo = {};
  Box there = {};  ///< the part of that input which needs no waiting

  const Node& node() const { return graph.node(id); }
};

struct Gradients {
  std::vector<at::Tensor> inputs;      ///< with the boxes of TileRun::inputs, and of its addend
  std::vector<at::Tensor> parameters;  ///< of trainable ones, in order; undefined: nothing to add
  /// Where set, it makes those of the parameters, while that of the input travels.
  std::function<std::vector<at::Tensor>()> parameters_later = {};
};

/// What backward needs of one run. Every rank runs its operators in the same order, forward and
/// backward, so operators may be collective.
class Tape {
 public:
  virtual ~Tape() = default;
  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  /// The gradient with respect to the output, over its whole box. Called once.
  virtual Gradients backward(const at::Tensor& gradient) = 0;
};

struct TileResult {
  at::Tensor output;
  std::unique_ptr<Tape> tape;
  std::vector<at::Tensor> statistics = {};  ///< what a batch norm measured: mean, variance
  std::function<void()> remake = {};        ///< writes the output once more, where that is possible
};

/// True where nobody else has the memory of this tensor, so that it may be overwritten.
bool sole_owner(const at::Tensor& tensor);

/// Runs the operator of a node on this rank's box.
TileResult run(const TileRun& run);

/// True for operators that talk to other ranks: those with nothing to compute must join in too.
bool collective(const Operator& op);

}  // namespace mpi4dl
