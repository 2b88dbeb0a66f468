#include <ATen/ATen.h>

#include <utility>

#include "graph/geometry.hpp"
#include "ops/kernels/convolution.hpp"
#include "ops/kernels/memory_order.hpp"
#include "ops/kernels/normalisation.hpp"
#include "ops/operators.hpp"
#include "ops/padding.hpp"

namespace mpi4dl {
namespace {

/// By libtorch.
class ConvolutionTape : public Tape {
 public:
  ConvolutionTape(const Convolution& op, at::Tensor input, at::Tensor weight, Padding frame,
                  std::vector<int64_t> padding, const std::vector<Window>& windows, bool sums)
      : input_(std::move(input)),
        weight_(std::move(weight)),
        frame_(std::move(frame)),
        padding_(std::move(padding)),
        groups_(op.groups),
        bias_(op.bias),
        sums_(sums),
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
    if (sums_) result.inputs.push_back(gradient);
    if (bias_) result.parameters.push_back(bias);
    return result;
  }

 private:
  at::Tensor input_, weight_;
  Padding frame_;                 // already around the input
  std::vector<int64_t> padding_;  // left to libtorch
  std::vector<int64_t> stride_, dilation_;
  int64_t groups_;
  bool bias_, sums_;
  int64_t out_channels_;
};

/// By the kernels for images.
class ImageConvolutionTape : public Tape {
 public:
  /// `travels`: others wait for the gradient of the input, so it comes first.
  ImageConvolutionTape(at::Tensor input, at::Tensor weight, at::Tensor weight_gradient, bool bias,
                       const ImageWindows& windows, bool sums, bool travels)
      : input_(std::move(input)),
        weight_(std::move(weight)),
        weight_gradient_(std::move(weight_gradient)),
        bias_(bias),
        windows_(windows),
        sums_(sums),
        travels_(travels) {}

  /// A part of the outputs.
  void forward(const at::Tensor& bias, const Patch& addend, const Patch& output,
               const Box& part) const {
    ImageWindows windows = windows_;
    for (int axis = 0; axis < 2; ++axis)
      windows[axis].padding -=
          (part[axis + 2].begin - output.box[axis + 2].begin) * windows[axis].stride;
    convolve(input_, weight_, bias, windows, sums_ ? addend.view(part) : at::Tensor(),
             output.view(part));
  }

  Gradients backward(const at::Tensor& gradient) override {
    const at::Tensor dy = with_channels_side_by_side(gradient);
    const std::vector<int64_t> shape = input_.sizes().vec();
    auto of_parameters = [dy, input = std::exchange(input_, {}), sums = weight_gradient_,
                          windows = windows_, bias = bias_]() mutable {
      add_weight_gradient(input, dy, windows, sums);
      input.reset();
      std::vector<at::Tensor> gradients(1);  // nothing left to add
      if (bias) gradients.push_back(channel_sums(dy));
      return gradients;
    };
    Gradients result;
    if (!travels_) result.parameters = of_parameters();  // and the input's memory is free
    result.inputs.push_back(empty_image(shape, dy.scalar_type()));
    convolve_back(dy, weight_, windows_, result.inputs[0]);
    if (sums_) result.inputs.push_back(gradient);
    if (travels_) result.parameters_later = std::move(of_parameters);
    return result;
  }

 private:
  at::Tensor input_, weight_, weight_gradient_;
  bool bias_;
  ImageWindows windows_;
  bool sums_, travels_;
};

/// The outputs that read nothing but padding and what is `there` of the input.
Interval ready_outputs(const Window& window, Interval outputs, const Interval& input,
                       const Interval& there) {
  const auto ready = [&](int64_t output) {
    return there.contains(intersect(window.need({output, output + 1}), input));
  };
  while (!outputs.empty() && !ready(outputs.begin)) ++outputs.begin;
  while (!outputs.empty() && !ready(outputs.end - 1)) --outputs.end;
  return outputs;
}

/// Of a tile's outputs.
Box ready_part(const TileRun& run, const std::vector<Window>& windows) {
  Box ready = run.output;
  for (int axis = 2; axis < ready.axes(); ++axis)
    ready[axis] =
        ready_outputs(windows[axis - 2], ready[axis], run.inputs[0].box[axis], run.there[axis]);
  return ready;
}

TileResult run_by_kernels(const Convolution& op, const TileRun& run,
                          const std::vector<Window>& wins, const Padding& padding) {
  ImageWindows windows{wins[0], wins[1]};
  for (size_t axis = 0; axis < windows.size(); ++axis) windows[axis].padding = padding.before[axis];
  const Patch& input = run.inputs[0];
  const auto type = input.data.scalar_type();
  const Patch output{run.output,
                     run.target.defined() ? run.target : empty_image(run.output.shape(), type)};
  const bool travels = static_cast<bool>(run.await_halo);
  auto tape =
      std::make_unique<ImageConvolutionTape>(input.data, run.parameters[0], run.gradient_sums[0],
                                             op.bias, windows, run.addend.data.defined(), travels);
  const at::Tensor bias = op.bias ? run.parameters[1] : at::Tensor();
  std::vector<Box> rest{run.output};
  if (travels) {
    const Box ready = ready_part(run, wins);
    if (!ready.empty()) {
      tape->forward(bias, run.addend, output, ready);
      rest = difference(run.output, ready);
    }
    run.await_halo();
  }
  for (const Box& part : rest) tape->forward(bias, run.addend, output, part);
  return {output.data, std::move(tape)};
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
  if (run.await_halo) run.await_halo();
  std::vector<int64_t> padding(wins.size(), 0);
  if (frame.symmetric()) {
    std::swap(padding, frame.before);
    frame.after = frame.before;
  }
  const bool sums = run.addend.data.defined();
  auto tape = std::make_unique<ConvolutionTape>(op, framed(run, frame), run.parameters[0], frame,
                                                padding, wins, sums);
  at::Tensor output = tape->forward(op.bias ? run.parameters[1] : at::Tensor());
  if (sums) output.add_(run.addend.data);
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
