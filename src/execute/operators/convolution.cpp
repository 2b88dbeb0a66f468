#include <ATen/ATen.h>

#include <optional>
#include <utility>

#include "execute/operation.hpp"
#include "execute/padding.hpp"

namespace mpi4dl {
namespace {

/// ConvolutionTape is a convolution of a tile, whose outputs may be computed part by part while a
/// halo is on its way.
class ConvolutionTape : public Tape {
 public:
  /// The input has `frame` around it. If it `travels`, others wait for its gradient, so that comes
  /// first.
  ConvolutionTape(const Convolution& op, const TileRun& run, at::Tensor input,
                  std::vector<Window> windows, Padding frame, bool travels)
      : backend_(run.backend()),
        tile_{std::move(windows), {}, op.groups},
        input_(std::move(input)),
        weight_(run.parameters[0]),
        bias_(op.bias ? run.parameters[1] : at::Tensor()),
        weight_gradient_(run.gradient_sums[0]),
        has_residual_(run.residual.data.defined()),
        travels_(travels),
        frame_(std::move(frame)) {
    for (int axis = 2; axis < run.output.axes(); ++axis)
      tile_.outputs.push_back(run.output[axis].length());
  }

  /// Computes all outputs, into `target` where it is defined.
  at::Tensor forward(const at::Tensor& residual, const at::Tensor& target) const {
    return backend_.convolve(tile_, input_, weight_, bias_, residual, target);
  }

  /// Computes a part of the outputs.
  void forward(const Patch& residual, const Patch& output, const Box& part) const {
    ConvolutionTile tile = tile_;
    for (size_t axis = 0; axis < tile.windows.size(); ++axis) {
      const Interval& whole = output.box[static_cast<int>(axis) + 2];
      const Interval& wanted = part[static_cast<int>(axis) + 2];
      tile.windows[axis].padding -= (wanted.begin - whole.begin) * tile.windows[axis].stride;
      tile.outputs[axis] = wanted.length();
    }
    backend_.convolve(tile, input_, weight_, bias_,
                      has_residual_ ? residual.view(part) : at::Tensor(), output.view(part));
  }

  Gradients backward(const at::Tensor& gradient) override {
    const std::vector<int64_t> shape = input_.sizes().vec();
    auto of_parameters = [&backend = backend_, tile = tile_, dy = gradient,
                          input = std::exchange(input_, {}), sums = weight_gradient_,
                          has_bias = bias_.defined()]() mutable {
      if (sums.defined()) backend.accumulate_weight_gradient(tile, input, dy, sums);  // not frozen
      input.reset();
      std::vector<at::Tensor> gradients(1);  // nothing left to add
      if (has_bias) gradients.push_back(backend.channel_sums(dy));
      return gradients;
    };
    Gradients result;
    if (!travels_) result.parameters = of_parameters();  // and the input's memory is free
    result.inputs.push_back(
        unpad(backend_.convolve_backward_data(tile_, gradient, weight_, shape), frame_));
    if (has_residual_) result.inputs.push_back(gradient);
    if (travels_) result.parameters_later = std::move(of_parameters);
    return result;
  }

 private:
  const Backend& backend_;
  ConvolutionTile tile_;
  at::Tensor input_, weight_, bias_;
  at::Tensor weight_gradient_;  // sums; undefined where the weight is frozen
  bool has_residual_, travels_;
  Padding frame_;
};

/// Returns the outputs that read nothing but padding and what is `there` of the input.
Interval ready_outputs(const Window& window, Interval outputs, const Interval& input,
                       const Interval& there) {
  while (!outputs.empty()) {
    const Interval reads = intersect(window.need(outputs), input);
    if (there.contains(reads)) break;
    // One output may read padding alone and the next one what is on its way.
    reads.begin < there.begin ? ++outputs.begin : --outputs.end;
  }
  return outputs;
}

/// Returns the part of a tile's outputs that needs no waiting.
Box ready_part(const TileRun& run, const std::vector<Window>& windows) {
  Box ready = run.output;
  for (int axis = 2; axis < ready.axes(); ++axis)
    ready[axis] =
        ready_outputs(windows[axis - 2], ready[axis], run.inputs[0].box[axis], run.there[axis]);
  return ready;
}

/// Holds zeros around an input, or the memory that has them there already.
struct PaddedInput {
  at::Tensor values;
  Padding inside;   // part of the values
  Padding outside;  // left to the backend
};

/// Returns what lies around an input in memory that begins with its padding and ends less than a
/// stride behind it: a convolution of all of that has the same outputs.
std::optional<Padding> frame_in(const Box& memory, const Box& input, const Box& padded,
                                const std::vector<Window>& windows) {
  if (memory[0] != input[0] || memory[1] != input[1]) return std::nullopt;
  Padding frame;
  for (int axis = 2; axis < memory.axes(); ++axis) {
    const int64_t behind = memory[axis].end - padded[axis].end;
    if (memory[axis].begin != padded[axis].begin || behind >= windows[axis - 2].stride)
      return std::nullopt;
    frame.before.push_back(input[axis].begin - memory[axis].begin);
    frame.after.push_back(memory[axis].end - input[axis].end);
  }
  return frame;
}

/// Where memory has the padding around the input, it need not be made. A backend that wants it is
/// given all of that memory if it can be: a part has gaps between its rows, and libtorch would copy
/// it before it convolves.
PaddedInput padded_input(const TileRun& run, const Convolution& op,
                         const std::vector<Window>& windows) {
  const Patch& input = run.inputs[0];
  const Patch& memory = run.halo_buffers[0];
  const Padding frame = padding_around(input.box, run.output, windows);
  const Padding none{std::vector<int64_t>(frame.before.size(), 0),
                     std::vector<int64_t>(frame.before.size(), 0)};
  Box padded = input.box;
  for (int axis = 2; axis < padded.axes(); ++axis) {
    padded[axis].begin -= frame.before[axis - 2];
    padded[axis].end += frame.after[axis - 2];
  }
  if (!memory.data.defined() || input.box.empty() || !memory.box.contains(padded) ||
      !run.backend().wants_padded_input(input.data, run.parameters[0], op.groups))
    return {input.data, none, frame};
  if (auto all = frame_in(memory.box, input.box, padded, windows))
    return {memory.data, *std::move(all), none};
  if (frame.symmetric()) return {input.data, none, frame};
  return {memory.view(padded), frame, none};
}

/// Computes what it can while the halo is on its way, then the rest. A device convolves the whole
/// buffer as it lies there, because libtorch would copy a part of it, and then once more what
/// needed the halo.
at::Tensor convolve_meanwhile(const ConvolutionTape& tape, const TileRun& run, const Box& ready) {
  if (ready.empty()) {
    run.await_halo();
    return tape.forward(run.residual.data, run.target);
  }
  Patch output{run.output, run.target};
  if (!run.backend().on_host()) {
    output.data = tape.forward(run.residual.data, run.target);
  } else {
    if (!run.target.defined())
      output = run.backend().empty(run.output, run.inputs[0].data.scalar_type());
    tape.forward(run.residual, output, ready);
  }
  run.await_halo();
  for (const Box& part : difference(run.output, ready)) tape.forward(run.residual, output, part);
  return output.data;
}

/// Convolves a value without pixels: a product with a matrix for each group of channels.
TileResult convolve_one_pixel(const Convolution& op, const TileRun& run) {
  if (run.await_halo) run.await_halo();
  const at::Tensor weight = run.parameters[0].reshape({op.groups, op.out_channels / op.groups, -1});
  const auto by_group = [groups = op.groups](const at::Tensor& values) {
    return values.unflatten(1, {groups, -1}).transpose(0, 1);
  };
  const auto together = [](const at::Tensor& groups) { return groups.transpose(0, 1).flatten(1); };
  const at::Tensor input = by_group(run.inputs[0].data), residual = run.residual.data;
  at::Tensor output = together(input.bmm(weight.transpose(1, 2)));
  if (op.bias) output = output + run.parameters[1];
  if (residual.defined()) output = output + residual;
  return with_backward(
      std::move(output),
      [=, trains_weight = run.trains(0), bias = op.bias, has_residual = residual.defined(),
       shape = run.parameters[0].sizes().vec()](const at::Tensor& gradient) {
        const at::Tensor dy = by_group(gradient);
        Gradients result{{together(dy.bmm(weight))}, {at::Tensor()}};
        if (has_residual) result.inputs.push_back(gradient);
        if (trains_weight) result.parameters[0] = dy.transpose(1, 2).bmm(input).reshape(shape);
        if (bias) result.parameters.push_back(gradient.sum(0));
        return result;
      });
}

}  // namespace

template <>
TileResult run_tile(const Convolution& op, const TileRun& run) {
  if (run.output.axes() == 2) return convolve_one_pixel(op, run);
  std::vector<Window> wins = windows(op, run.inputs[0].box.axes() - 2);
  const bool travels = static_cast<bool>(run.await_halo);
  const Box ready = travels ? ready_part(run, wins) : Box();
  PaddedInput input = padded_input(run, op, wins);
  for (size_t axis = 0; axis < wins.size(); ++axis) wins[axis].padding = input.outside.before[axis];
  auto tape = std::make_unique<ConvolutionTape>(op, run, std::move(input.values), std::move(wins),
                                                std::move(input.inside), travels);
  at::Tensor output = travels ? convolve_meanwhile(*tape, run, ready)
                              : tape->forward(run.residual.data, run.target);
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
