#include <ATen/ATen.h>

#include <utility>

#include "graph/geometry.hpp"
#include "ops/kernels/convolution.hpp"
#include "ops/operators.hpp"
#include "ops/padding.hpp"

namespace mpi4dl {
namespace {

at::Tensor empty_image(at::IntArrayRef shape, c10::ScalarType type) {
  return at::empty(shape, at::TensorOptions(type).memory_format(at::MemoryFormat::ChannelsLast));
}

/// By libtorch.
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
    for (const Window& window : windows) {
      stride_.push_back(window.stride);
      dilation_.push_back(window.dilation);
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

/// By the kernels for images.
class ImageConvolutionTape : public Tape {
 public:
  ImageConvolutionTape(at::Tensor input, at::Tensor weight, bool bias, const ImageWindows& windows)
      : input_(std::move(input)), weight_(std::move(weight)), bias_(bias), windows_(windows) {}

  void forward(const at::Tensor& bias, const at::Tensor& output) const {
    convolve(input_, weight_, bias, windows_, output);
  }

  Gradients backward(const at::Tensor& gradient) override {
    // Pooling hands back one number for many pixels, or channels one after the other.
    const bool side_by_side = gradient.stride(1) == 1 || gradient.size(1) == 1;
    const at::Tensor dy =
        side_by_side ? gradient : gradient.contiguous(at::MemoryFormat::ChannelsLast);
    Gradients result{{}, {weight_gradient(input_, dy, weight_, windows_)}};
    const std::vector<int64_t> shape = input_.sizes().vec();
    input_.reset();
    result.inputs.push_back(empty_image(shape, dy.scalar_type()));
    convolve_back(dy, weight_, windows_, result.inputs[0]);
    if (bias_) result.parameters.push_back(dy.sum({0, 2, 3}));
    return result;
  }

 private:
  at::Tensor input_, weight_;
  bool bias_;
  ImageWindows windows_;
};

TileResult run_by_kernels(const Convolution& op, const TileRun& run,
                          const std::vector<Window>& wins, const Padding& padding) {
  ImageWindows windows{wins[0], wins[1]};
  for (size_t axis = 0; axis < windows.size(); ++axis) windows[axis].padding = padding.before[axis];
  const at::Tensor& input = run.inputs[0].data;
  at::Tensor output =
      run.target.defined() ? run.target : empty_image(run.output.shape(), input.scalar_type());
  auto tape = std::make_unique<ImageConvolutionTape>(input, run.parameters[0], op.bias, windows);
  tape->forward(op.bias ? run.parameters[1] : at::Tensor(), output);
  return {std::move(output), std::move(tape)};
}

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
  if (has_convolution_kernel(input.data, run.parameters[0], op.groups))
    return run_by_kernels(op, run, wins, frame);
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
