// The shapes of results. Each error is the end of a sentence that Graph::add begins with the names
// of the nodes.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "graph/geometry.hpp"

namespace mpi4dl {
namespace {

using Shapes = std::vector<Shape>;

std::string by_axis(const Extents& values) {
  return fmt::format("{}", fmt::join(values, "x"));
}

const Shape& only(const Shapes& inputs) {
  validate(inputs.size() == 1, "it has 1 input, not {}", inputs.size());
  return inputs.front();
}

const Shape& only_spatial(const Shapes& inputs) {
  const Shape& input = only(inputs);
  validate(input.spatial(), "it needs an input with spatial axes");
  return input;
}

void check_several(const Shapes& inputs) {
  validate(inputs.size() >= 2, "it needs at least 2 inputs, not {}", inputs.size());
}

/// An option has one number per spatial axis; none stands for its default.
void check_option(const char* name, const Extents& values, int64_t least, const Shape& input) {
  if (values.empty()) return;
  validate(values.size() == input.space.size(),
           "its {} {} needs one number for each of {} spatial axes", name, by_axis(values),
           input.space.size());
  for (const int64_t value : values)
    validate(value >= least, "its {} {} must be at least {} on each axis", name, by_axis(values),
             least);
}

void check_kernel(const Extents& kernel, const Shape& input) {
  validate(!kernel.empty(), "it has no kernel");
  check_option("kernel", kernel, 1, input);
}

template <typename Op>
void check_window_options(const Op& op, const Shape& input) {
  check_kernel(op.kernel, input);
  check_option("stride", op.stride, 1, input);
  check_option("padding", op.padding, 0, input);
  if constexpr (requires { op.dilation; }) check_option("dilation", op.dilation, 1, input);
}

void check_channels(int64_t in, int64_t out, int64_t groups) {
  validate(out >= 1, "it needs at least 1 output channel, not {}", out);
  validate(groups >= 1 && in % groups == 0 && out % groups == 0,
           "its {} groups must divide the {} input and {} output channels", groups, in, out);
}

/// A window that lies in the padding alone would have nothing to pool.
void check_pool_padding(const Extents& kernel, const Extents& padding) {
  for (size_t axis = 0; axis < padding.size(); ++axis)
    validate(2 * padding[axis] <= kernel[axis],
             "its padding {} must be at most half of its kernel {}", by_axis(padding),
             by_axis(kernel));
}

/// The extents after the windows of `op` have gone over the input.
template <typename Op>
Extents slide(const Op& op, const Shape& input, bool ceil_mode = false) {
  Extents outputs, spans, padded;
  for (const Window& window : windows(op, static_cast<int>(input.space.size()))) {
    const int64_t length = input.space[outputs.size()];
    outputs.push_back(window.outputs(length, ceil_mode));
    spans.push_back(window.span());
    padded.push_back(length + 2 * window.padding);
  }
  for (const int64_t length : outputs)
    validate(length >= 1, "its kernel {} covers {} pixels, but the input has only {} with padding",
             by_axis(op.kernel), by_axis(spans), by_axis(padded));
  return outputs;
}

template <typename Op>
Shape pooled(const Op& op, const Shapes& inputs) {
  const Shape& input = only_spatial(inputs);
  check_window_options(op, input);
  check_pool_padding(op.kernel, op.padding);
  return {input.channels, slide(op, input, op.ceil_mode)};
}

Shape result(const Input& op, const Shapes& inputs) {
  validate(inputs.empty(), "the input of a graph has no inputs itself");
  validate(op.shape.channels >= 1, "an image needs at least 1 channel, not {}", op.shape.channels);
  validate(op.shape.space.size() == 2 || op.shape.space.size() == 3,
           "an image has 2 spatial axes and a volume 3, not {}", op.shape.space.size());
  for (const int64_t length : op.shape.space)
    validate(length >= 1, "an image of {} has no pixels", by_axis(op.shape.space));
  return op.shape;
}

Shape result(const Convolution& op, const Shapes& inputs) {
  const Shape& input = only_spatial(inputs);
  check_window_options(op, input);
  check_channels(input.channels, op.out_channels, op.groups);
  return {op.out_channels, slide(op, input)};
}

Extents transposed_extents(const TransposedConvolution& op, const Extents& space) {
  Extents result;
  for (size_t axis = 0; axis < space.size(); ++axis) {
    const auto option = [axis](const Extents& values, int64_t otherwise) {
      return values.empty() ? otherwise : values[axis];
    };
    result.push_back((space[axis] - 1) * option(op.stride, 1) - 2 * option(op.padding, 0) +
                     option(op.dilation, 1) * (op.kernel[axis] - 1) + option(op.output_padding, 0) +
                     1);
  }
  return result;
}

/// As torch demands: more would make rows that no input can reach.
void check_output_padding(const TransposedConvolution& op) {
  for (size_t axis = 0; axis < op.output_padding.size(); ++axis) {
    const int64_t stride = op.stride.empty() ? 1 : op.stride[axis];
    const int64_t dilation = op.dilation.empty() ? 1 : op.dilation[axis];
    validate(op.output_padding[axis] < std::max(stride, dilation),
             "its output padding {} must be smaller than its stride or its dilation",
             by_axis(op.output_padding));
  }
}

Shape result(const TransposedConvolution& op, const Shapes& inputs) {
  const Shape& input = only_spatial(inputs);
  check_window_options(op, input);
  check_option("output padding", op.output_padding, 0, input);
  check_output_padding(op);
  check_channels(input.channels, op.out_channels, op.groups);
  const Extents space = transposed_extents(op, input.space);
  for (const int64_t length : space)
    validate(length >= 1, "its padding {} leaves nothing of the result", by_axis(op.padding));
  return {op.out_channels, space};
}

Shape result(const GroupNorm& op, const Shapes& inputs) {
  const Shape& input = only(inputs);
  validate(op.groups >= 1 && input.channels % op.groups == 0,
           "its {} groups must divide the {} channels", op.groups, input.channels);
  return input;
}

Shape result(const MaxPool& op, const Shapes& inputs) {
  return pooled(op, inputs);
}
Shape result(const AvgPool& op, const Shapes& inputs) {
  return pooled(op, inputs);
}

Shape result(const GlobalAvgPool&, const Shapes& inputs) {
  return {only_spatial(inputs).channels, {}};
}

Shape result(const Upsample& op, const Shapes& inputs) {
  Shape shape = only_spatial(inputs);
  validate(op.factor >= 1, "its factor must be at least 1, not {}", op.factor);
  validate(op.mode == Interpolation::nearest || shape.space.size() == 2,
           "bilinear upsampling needs 2 spatial axes, not {}", shape.space.size());
  for (int64_t& length : shape.space) length *= op.factor;
  return shape;
}

Shape result(const Add&, const Shapes& inputs) {
  check_several(inputs);
  for (const Shape& shape : inputs)
    validate(shape == inputs.front(), "{} and {} differ", to_string(inputs.front()),
             to_string(shape));
  return inputs.front();
}

Shape result(const Concat&, const Shapes& inputs) {
  check_several(inputs);
  Shape joined{0, inputs.front().space};
  for (const Shape& shape : inputs) {
    validate(shape.space == joined.space, "only the channels of {} and {} may differ",
             to_string(inputs.front()), to_string(shape));
    joined.channels += shape.channels;
  }
  return joined;
}

Shape result(const Flatten&, const Shapes& inputs) {
  return {only(inputs).elements(), {}};
}

Shape result(const Linear& op, const Shapes& inputs) {
  validate(!only(inputs).spatial(),
           "it needs an input without spatial axes; flatten it or pool it globally first");
  validate(op.out_features >= 1, "it needs at least 1 output feature, not {}", op.out_features);
  return {op.out_features, {}};
}

Shape result(const Dropout& op, const Shapes& inputs) {
  validate(op.probability >= 0 && op.probability < 1, "its probability must be in [0, 1), not {}",
           op.probability);
  return only(inputs);
}

Shape result(const BatchNorm&, const Shapes& inputs) {
  return only(inputs);
}
Shape result(const Relu&, const Shapes& inputs) {
  return only(inputs);
}
Shape result(const Identity&, const Shapes& inputs) {
  return only(inputs);
}

}  // namespace

Shape result_shape(const Operator& op, const std::vector<Shape>& inputs) {
  return std::visit([&](const auto& alternative) { return result(alternative, inputs); }, op);
}

}  // namespace mpi4dl
