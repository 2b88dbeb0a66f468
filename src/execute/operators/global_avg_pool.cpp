#include <ATen/ATen.h>

#include "exchange/redistribution.hpp"
#include "execute/channels.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

/// Each tile contributes the sum of its own pixels; the first tile of the batch part adds them.
/// That is the adjoint of handing the result out, and its backward hands the gradient out.
class GlobalAvgPoolTape : public Tape {
 public:
  explicit GlobalAvgPoolTape(const TileRun& run)
      : pooling_(*run.pooling),
        input_(run.inputs[0].box),
        part_(run.pooled_part),
        owned_(run.owned),
        pixels_(run.graph.node(run.node().inputs[0]).shape.elements() / run.node().shape.channels),
        type_(run.inputs[0].data.scalar_type()) {}

  at::Tensor forward(const at::Tensor& input) {
    const Patch part = make_patch(pooling_.comm(), part_, type_);
    if (!input_.empty()) part.data.copy_(sum_over_pixels(input).div_(static_cast<double>(pixels_)));
    const Patch whole = make_patch(pooling_.comm(), owned_, type_);
    whole.data.zero_();
    pooling_.run_adjoint(part, whole);
    return whole.data;
  }

  Gradients backward(const at::Tensor& gradient) override {
    const Patch part = make_patch(pooling_.comm(), part_, type_);
    pooling_.run({owned_, gradient.defined() ? gradient : at::empty({0, 0}, part.data.options())},
                 part);
    if (input_.empty()) return {{at::Tensor()}, {}};
    const at::Tensor share = part.data.div(static_cast<double>(pixels_));
    return {{at_every_pixel(share, input_.axes()).expand(input_.shape())}, {}};
  }

 private:
  const Redistribution& pooling_;
  Box input_, part_, owned_;
  int64_t pixels_;
  c10::ScalarType type_;
};

}  // namespace

template <>
TileResult run_tile(const GlobalAvgPool& /*op*/, const TileRun& run) {
  auto tape = std::make_unique<GlobalAvgPoolTape>(run);
  at::Tensor output = tape->forward(run.inputs[0].data);
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
