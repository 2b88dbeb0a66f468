#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "graph/geometry.hpp"
#include "ops/operators.hpp"
#include "ops/padding.hpp"

namespace mpi4dl {
namespace {

/// A kernel of one pixel is the same whatever its dilation. With one thread libtorch computes it by
/// BLAS, ten times slower than by oneDNN where BLAS is the reference's; dilated ones always go to
/// oneDNN.
int64_t dilation_of_points(const std::vector<Window>& windows, c10::ScalarType type) {
  const bool point = std::all_of(windows.begin(), windows.end(),
                                 [](const Window& window) { return window.kernel == 1; });
  return point && type == c10::ScalarType::Float && at::globalContext().hasMKLDNN() ? 2 : 1;
}

class ConvolutionTape : public Tape {
 public:
  ConvolutionTape(const Convolution& op, at::Tensor input, at::Tensor weight, Padding frame,
                  std::vector<int64_t> padding, const std::vector<Window>& windows)
      : input_(std::move(input)),
        weight_(std::move(weight)),
        frame_(std::move(frame)),
        padding_(std::move(padding)),
        groups_(op.groups),
        bias_(op.bias),
        out_channels_(op.out_channels) {
    const int64_t spread = dilation_of_points(windows, input_.scalar_type());
    for (const Window& window : windows) {
      stride_.push_back(window.stride);
      dilation_.push_back(window.dilation * spread);
    }
  }

  at::Tensor forward(const at::Tensor& bias) const {
    return at::convolution(input_, weight_, bias, stride_, padding_, dilation_,
                           /*transposed=*/false, std::vector<int64_t>(stride_.size(), 0), groups_);
  }

  Gradients backward(const at::Tensor& gradient) override {
    const std::vector<int64_t> bias_sizes{out_channels_};
    auto [input, weight, bias] = at::convolution_backward(
        gradient, input_, weight_, bias_sizes, stride_, padding_, dilation_, /*transposed=*/false,
        std::vector<int64_t>(stride_.size(), 0), groups_, {true, true, bias_});
    Gradients result{{unpad(input, frame_)}, {weight}};
    if (bias_) result.parameters.push_back(bias);
    return result;
  }

 private:
  at::Tensor input_, weight_;
  Padding frame_;                 // already around the input
  std::vector<int64_t> padding_;  // left to libtorch
  std::vector<int64_t> stride_, dilation_;
  int64_t groups_;
  bool bias_;
  int64_t out_channels_;
};

/// The input with its frame of zeros: where there is room for it around the input, it is there.
at::Tensor framed(const TileRun& run, const Padding& frame) {
  const Patch& input = run.inputs[0];
  const Patch& room = run.rooms[0];
  Box padded = input.box;
  for (int axis = 2; axis < padded.axes(); ++axis) {
    padded[axis].begin -= frame.before[axis - 2];
    padded[axis].end += frame.after[axis - 2];
  }
  if (room.data.defined() && !input.box.empty() && room.box.contains(padded))
    return room.view(padded);
  return pad(input.data, frame, 0);
}

}  // namespace

TileResult run_convolution(const Convolution& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const std::vector<Window> wins = windows(op, input.box.axes() - 2);
  Padding frame = padding_around(input.box, run.output, wins);
  std::vector<int64_t> padding(wins.size(), 0);
  if (frame.symmetric()) {
    std::swap(padding, frame.before);
    frame.after = frame.before;
  }
  auto tape = std::make_unique<ConvolutionTape>(op, framed(run, frame), run.parameters[0], frame,
                                                padding, wins);
  at::Tensor output = tape->forward(op.bias ? run.parameters[1] : at::Tensor());
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
