#include <ATen/ATen.h>

#include <limits>

#include "execute/operation.hpp"
#include "execute/padding.hpp"
#include "execute/pool_arguments.hpp"

namespace mpi4dl {
namespace {

class MaxPoolTape : public Tape {
 public:
  MaxPoolTape(PoolArguments arguments, Padding frame, at::Tensor input)
      : arguments_(std::move(arguments)), frame_(std::move(frame)), input_(std::move(input)) {}

  at::Tensor forward() {
    const auto& a = arguments_;
    auto [output, indices] =
        a.volume()
            ? at::max_pool3d_with_indices(input_, a.kernel, a.stride, a.no_padding, a.dilation)
            : at::max_pool2d_with_indices(input_, a.kernel, a.stride, a.no_padding, a.dilation);
    indices_ = indices;
    return output;
  }

  Gradients backward(const at::Tensor& gradient) override {
    const auto& a = arguments_;
    const at::Tensor padded =
        a.volume()
            ? at::max_pool3d_with_indices_backward(gradient, input_, a.kernel, a.stride,
                                                   a.no_padding, a.dilation, false, indices_)
            : at::max_pool2d_with_indices_backward(gradient, input_, a.kernel, a.stride,
                                                   a.no_padding, a.dilation, false, indices_);
    return {{unpad(padded, frame_)}, {}};
  }

 private:
  PoolArguments arguments_;
  Padding frame_;
  at::Tensor input_, indices_;
};

}  // namespace

template <>
TileResult run_tile(const MaxPool& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const std::vector<Window> wins = windows(op, input.box.axes() - 2);
  const Padding frame = padding_around(input.box, run.output, wins);
  auto tape = std::make_unique<MaxPoolTape>(
      PoolArguments(wins), frame, pad(input.data, frame, -std::numeric_limits<double>::infinity()));
  at::Tensor output = tape->forward();
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
