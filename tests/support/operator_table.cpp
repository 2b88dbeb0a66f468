#include "support/operator_table.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace mpi4dl::testing {
namespace {

struct RowOptions {
  DrawOperator draw = {};
  int cases = 0;
  bool ties = false;
  bool layer = false;
};

/// Makes a row of the table; `whole(node, op)` runs the operator by libtorch.
template <typename Op, typename Whole>
OperatorRow row(Whole whole, RowOptions options = {}) {
  if (!options.draw) options.draw = [](Dice&, const Shape&) { return Op{}; };
  return {.name = Op::kName,
          .whole = [whole](const WholeNode& node,
                           const Operator& op) { return whole(node, std::get<Op>(op)); },
          .draw = options.draw,
          .cases = options.cases,
          .ties = options.ties,
          .layer = options.layer};
}

/// Returns how libtorch counts widths: from the last axis to the first, before and after.
std::vector<int64_t> frame(const Extents& before, const Extents& after) {
  std::vector<int64_t> widths;
  for (size_t axis = before.size(); axis-- > 0;)
    widths.insert(widths.end(), {before[axis], after[axis]});
  return widths;
}

at::Tensor convolution(const WholeNode& n, const Convolution& op) {
  if (n.x().dim() == 2) {
    const at::Tensor map = n.x().unsqueeze(-1).unsqueeze(-1), weight = n.parameters[0];
    return at::convolution(map, weight.flatten(2).unsqueeze(-1), n.bias(op.bias), {1, 1}, {0, 0},
                           {1, 1}, /*transposed=*/false, {0, 0}, op.groups)
        .flatten(1);
  }
  const Extents stride = n.each(op.stride, 1), padding = n.each(op.padding, 0);
  const Extents dilation = n.each(op.dilation, 1), none = n.each({}, 0);
  const auto &weight = n.parameters[0], bias = n.bias(op.bias);
  if (!op.padding_end.empty())
    return at::convolution(at::constant_pad_nd(n.x(), frame(padding, op.padding_end), 0), weight,
                           bias, stride, none, dilation, /*transposed=*/false, none, op.groups);
  return n.volume() ? at::conv3d(n.x(), weight, bias, stride, padding, dilation, op.groups)
                    : at::conv2d(n.x(), weight, bias, stride, padding, dilation, op.groups);
}

at::Tensor transposed_convolution(const WholeNode& n, const TransposedConvolution& op) {
  const Extents stride = n.each(op.stride, 1), padding = n.each(op.padding, 0);
  const Extents dilation = n.each(op.dilation, 1), extra = n.each(op.output_padding, 0);
  const auto& weight = n.parameters[0];
  return n.volume() ? at::conv_transpose3d(n.x(), weight, n.bias(op.bias), stride, padding, extra,
                                           op.groups, dilation)
                    : at::conv_transpose2d(n.x(), weight, n.bias(op.bias), stride, padding, extra,
                                           op.groups, dilation);
}

at::Tensor batch_norm(const WholeNode& n, const BatchNorm& op) {
  const at::Tensor mean = n.parameters.end()[-2], variance = n.parameters.end()[-1];
  return at::batch_norm(n.x(), n.weight(op.affine), n.bias(op.affine), mean, variance,
                        n.training && !op.frozen, op.momentum, op.eps, /*cudnn_enabled=*/false);
}

at::Tensor max_pool(const WholeNode& n, const MaxPool& op) {
  const Extents stride = op.stride.empty() ? op.kernel : op.stride;
  const Extents padding = n.each(op.padding, 0), dilation = n.each(op.dilation, 1);
  if (!op.padding_end.empty()) {
    // As many rows at the end as the last window hangs over, and no window more.
    Extents end;
    for (size_t axis = 0; axis < n.space.size(); ++axis)
      end.push_back(op.window(static_cast<int>(axis)).need({0, n.space[axis]}).end -
                    n.x().size(static_cast<int64_t>(axis) + 2));
    const at::Tensor x =
        at::constant_pad_nd(n.x(), frame(padding, end), -std::numeric_limits<double>::infinity());
    const Extents none = n.each({}, 0);
    return n.volume() ? at::max_pool3d(x, op.kernel, stride, none, dilation)
                      : at::max_pool2d(x, op.kernel, stride, none, dilation);
  }
  return n.volume() ? at::max_pool3d(n.x(), op.kernel, stride, padding, dilation, op.ceil_mode)
                    : at::max_pool2d(n.x(), op.kernel, stride, padding, dilation, op.ceil_mode);
}

/// Sums up windows over an input with zeros around it, and over its pixels that count.
at::Tensor avg_pool_padded_otherwise_at_the_end(const WholeNode& n, const AvgPool& op) {
  const Extents before = n.each(op.padding, 0), none = n.each({}, 0);
  Extents stride, over;
  for (size_t axis = 0; axis < n.space.size(); ++axis) {
    const Window window = op.window(static_cast<int>(axis));
    const int64_t length = n.x().size(static_cast<int64_t>(axis) + 2);
    stride.push_back(window.stride);
    over.push_back(window.need({0, n.space[axis]}).end - length - op.padding_end[axis]);
  }
  const auto sums = [&](const at::Tensor& x) {
    return n.volume() ? at::avg_pool3d(x, op.kernel, stride, none, false, true, 1)
                      : at::avg_pool2d(x, op.kernel, stride, none, false, true, 1);
  };
  const auto padded = [&](const at::Tensor& x, double value) {
    const at::Tensor framed = at::constant_pad_nd(x, frame(before, op.padding_end), value);
    return at::constant_pad_nd(framed, frame(none, over), 0);
  };
  const at::Tensor ones = at::ones_like(n.x());
  return sums(padded(n.x(), 0)) / sums(padded(ones, op.count_include_pad ? 1 : 0));
}

at::Tensor avg_pool(const WholeNode& n, const AvgPool& op) {
  if (!op.padding_end.empty()) return avg_pool_padded_otherwise_at_the_end(n, op);
  const Extents stride = op.stride.empty() ? op.kernel : op.stride;
  const Extents padding = n.each(op.padding, 0);
  const bool count = op.count_include_pad;
  return n.volume() ? at::avg_pool3d(n.x(), op.kernel, stride, padding, op.ceil_mode, count)
                    : at::avg_pool2d(n.x(), op.kernel, stride, padding, op.ceil_mode, count);
}

at::Tensor global_avg_pool(const WholeNode& n, const GlobalAvgPool&) {
  const Extents one = n.each({}, 1);
  return (n.volume() ? at::adaptive_avg_pool3d(n.x(), one) : at::adaptive_avg_pool2d(n.x(), one))
      .flatten(1);
}

at::Tensor adaptive_avg_pool(const WholeNode& n, const AdaptiveAvgPool& op) {
  return n.volume() ? at::adaptive_avg_pool3d(n.x(), op.size)
                    : at::adaptive_avg_pool2d(n.x(), op.size);
}

c10::optional<double> scale(const Resize& op, size_t axis) {
  if (op.factor.empty()) return {};
  return op.factor[axis];
}

/// Lays out an image channels-last: otherwise libtorch 1.13 takes other nearest pixels forward than
/// backward where a factor is given.
at::Tensor channels_last(const WholeNode& n) {
  return n.x().contiguous(n.volume() ? at::MemoryFormat::ChannelsLast3d
                                     : at::MemoryFormat::ChannelsLast);
}

at::Tensor resized_volume(const WholeNode& n, const Resize& op) {
  const auto depth = scale(op, 0), height = scale(op, 1), width = scale(op, 2);
  if (op.mode == Interpolation::bilinear)
    return at::upsample_trilinear3d(n.x(), n.space, op.align_corners, depth, height, width);
  return op.mode == Interpolation::nearest
             ? at::upsample_nearest3d(channels_last(n), n.space, depth, height, width)
             : at::_upsample_nearest_exact3d(channels_last(n), n.space, depth, height, width);
}

at::Tensor resize(const WholeNode& n, const Resize& op) {
  if (n.volume()) return resized_volume(n, op);
  const auto height = scale(op, 0), width = scale(op, 1);
  switch (op.mode) {
    case Interpolation::bilinear:
      return at::upsample_bilinear2d(n.x(), n.space, op.align_corners, height, width);
    case Interpolation::bicubic:
      return at::upsample_bicubic2d(n.x(), n.space, op.align_corners, height, width);
    case Interpolation::nearest_exact:
      return at::_upsample_nearest_exact2d(channels_last(n), n.space, height, width);
    default:
      return at::upsample_nearest2d(channels_last(n), n.space, height, width);
  }
}

at::Tensor pad(const WholeNode& n, const Pad& op) {
  const auto widths = frame(n.each(op.before, 0), n.each(op.after, 0));
  if (op.mode == PadMode::constant) return at::constant_pad_nd(n.x(), widths, op.value);
  return at::pad(n.x(), widths, std::string(kWords<PadMode>[static_cast<int>(op.mode)].name));
}

at::Tensor add(const WholeNode& n, const Add&) {
  at::Tensor sum = n.inputs[0];
  for (size_t i = 1; i < n.inputs.size(); ++i) sum = sum + n.inputs[i];
  return sum;
}

at::Tensor at_every_pixel(at::Tensor values, size_t spatial_axes) {
  for (size_t axis = 0; axis < spatial_axes; ++axis) values = values.unsqueeze(-1);
  return values;
}

at::Tensor pointwise(const WholeNode& n, const Pointwise& op) {
  using enum PointwiseFunction;
  const at::Tensor& x = n.x();
  switch (op.function) {
    case sigmoid:
      return at::sigmoid(x);
    case silu:
      return at::silu(x);
    case tanh:
      return at::tanh(x);
    case gelu:
      return at::gelu(x);
    case gelu_tanh:
      return at::gelu(x, "tanh");
    case hardsigmoid:
      return at::hardsigmoid(x);
    case hardswish:
      return at::hardswish(x);
    case hardtanh:
      return at::hardtanh(x, op.a, op.b);
    case clamp:
      return at::clamp(x, op.a, op.b);
    case leaky_relu:
      return at::leaky_relu(x, op.a);
    case elu:
      return at::elu(x, op.a);
    case selu:
      return at::selu(x);
    case celu:
      return at::celu(x, op.a);
    case softplus:
      return at::softplus(x, op.a, op.b);
    case mish:
      return at::mish(x);
    case log_sigmoid:
      return at::log_sigmoid(x);
    case exp:
      return at::exp(x);
    case abs:
      return at::abs(x);
    case scale:
      return x * op.a + op.b;
    case pow:
      break;
  }
  return at::pow(x, op.a);
}

at::Tensor elementwise(const WholeNode& n, const Elementwise& op) {
  using enum ElementwiseFunction;
  const auto spread = [&](const at::Tensor& values) {
    return values.dim() == 2 ? at_every_pixel(values, n.space.size()) : values;
  };
  const at::Tensor a = spread(n.inputs[0]), b = spread(n.inputs[1]);
  switch (op.function) {
    case add:
      return a + b;
    case multiply:
      return a * b;
    case subtract:
      return a - b;
    case maximum:
      return at::maximum(a, b);
    case minimum:
      return at::minimum(a, b);
    case divide:
      break;
  }
  return a / b;
}

at::Tensor channel_scale(const WholeNode& n, const ChannelScale& op) {
  const size_t axes = n.space.size();
  const at::Tensor scaled = n.x() * at_every_pixel(n.parameters[0].unsqueeze(0), axes);
  return op.bias ? scaled + at_every_pixel(n.parameters[1].unsqueeze(0), axes) : scaled;
}

at::Tensor channel_norm(const WholeNode& n, const ChannelNorm& op) {
  return at::layer_norm(n.x().movedim(1, -1), {n.x().size(1)}, n.weight(op.affine),
                        n.bias(op.affine), op.eps)
      .movedim(-1, 1);
}

at::Tensor broadcast(const WholeNode& n, const Broadcast& op) {
  std::vector<int64_t> shape = n.x().sizes().vec();
  shape.insert(shape.end(), op.space.begin(), op.space.end());
  return at_every_pixel(n.x(), op.space.size()).expand(shape);
}

at::Tensor global_max_pool(const WholeNode& n, const GlobalMaxPool&) {
  const Extents one = n.each({}, 1);
  return std::get<0>(n.volume() ? at::adaptive_max_pool3d(n.x(), one)
                                : at::adaptive_max_pool2d(n.x(), one))
      .flatten(1);
}

Operator draw_channel_slice(Dice& dice, const Shape& input) {
  const int64_t begin = dice.pick(0, input.channels - 1);
  return ChannelSlice{.begin = begin, .end = dice.pick(begin + 1, input.channels)};
}

Operator draw_pixel_unshuffle(Dice& dice, const Shape&) {
  return PixelUnshuffle{.factor = dice.pick(2, 3)};
}

Operator draw_channel_shuffle(Dice& dice, const Shape& input) {
  return ChannelShuffle{.groups = draw_group_norm(dice, input).groups};
}

Operator draw_channel_pad(Dice& dice, const Shape&) {
  return ChannelPad{.before = dice.pick(0, 2), .after = dice.pick(0, 2)};
}

at::Tensor channel_pad(const WholeNode& n, const ChannelPad& op) {
  const at::Tensor zeros = at::zeros_like(n.x()).select(1, 0).unsqueeze(1);
  std::vector<at::Tensor> parts(op.before, zeros);
  parts.push_back(n.x());
  parts.insert(parts.end(), op.after, zeros);
  return at::cat(parts, 1);
}

at::Tensor dropout(const WholeNode& n, const Dropout&) {
  ensure(!n.training, "dropout has no whole reference in training");
  return n.x();
}

}  // namespace

const std::vector<OperatorRow>& operator_table() {
  using Node = const WholeNode&;
  static const std::vector<OperatorRow> table{
      row<Input>([](Node n, const Input&) { return n.x(); }),
      row<Convolution>(convolution, {.draw = draw_convolution, .cases = 100}),
      row<TransposedConvolution>(transposed_convolution,
                                 {.draw = draw_transposed_convolution, .cases = 70}),
      row<BatchNorm>(batch_norm, {.draw = draw_batch_norm, .cases = 30}),
      row<GroupNorm>(
          [](Node n, const GroupNorm& op) {
            return at::group_norm(n.x(), op.groups_of(n.x().size(1)), n.weight(op.affine),
                                  n.bias(op.affine), op.eps);
          },
          {.draw = draw_group_norm, .cases = 30}),
      row<Relu>([](Node n, const Relu&) { return at::relu(n.x()); },
                {.cases = 10, .ties = true, .layer = true}),
      row<MaxPool>(max_pool, {.draw = draw_max_pool, .cases = 80, .ties = true}),
      row<AvgPool>(avg_pool, {.draw = draw_avg_pool, .cases = 70}),
      row<GlobalAvgPool>(global_avg_pool, {.cases = 20}),
      row<Resize>(resize, {.draw = draw_resize, .cases = 120}),
      row<Add>(add),
      row<Concat>([](Node n, const Concat&) { return at::cat(n.inputs, 1); }),
      row<Flatten>([](Node n, const Flatten&) { return n.x().flatten(1); }, {.cases = 15}),
      row<Linear>(
          [](Node n, const Linear& op) {
            return at::linear(n.x(), n.parameters[0], n.bias(op.bias));
          },
          {.draw = draw_linear}),
      row<ChannelConvolution>(
          [](Node n, const ChannelConvolution& op) {
            return at::conv1d(n.x().unsqueeze(1), n.parameters[0], n.bias(op.bias), 1,
                              op.kernel / 2)
                .squeeze(1);
          },
          {.draw = draw_channel_convolution}),
      row<Dropout>(dropout, {.draw = draw_dropout}),
      row<Identity>([](Node n, const Identity&) { return n.x(); }, {.cases = 5, .layer = true}),
      row<Broadcast>(broadcast),
      row<ChannelSlice>(
          [](Node n, const ChannelSlice& op) { return n.x().slice(1, op.begin, op.end); },
          {.draw = draw_channel_slice, .cases = 10, .layer = true}),
      row<GlobalMaxPool>(global_max_pool, {.cases = 30, .ties = true}),
      row<Pointwise>(pointwise, {.draw = draw_activation, .cases = 60, .layer = true}),
      row<Elementwise>(elementwise),
      row<ChannelScale>(channel_scale, {.draw = draw_channel_scale, .cases = 20, .layer = true}),
      row<PRelu>([](Node n, const PRelu&) { return at::prelu(n.x(), n.parameters[0]); },
                 {.draw = draw_prelu, .cases = 20, .layer = true}),
      row<ChannelNorm>(channel_norm, {.draw = draw_channel_norm, .cases = 30}),
      row<ChannelSoftmax>([](Node n, const ChannelSoftmax&) { return at::softmax(n.x(), 1); },
                          {.cases = 15}),
      row<AdaptiveAvgPool>(adaptive_avg_pool, {.draw = draw_adaptive_avg_pool, .cases = 60}),
      row<Pad>(pad, {.draw = draw_pad, .cases = 100}),
      row<PixelShuffle>(
          [](Node n, const PixelShuffle& op) { return at::pixel_shuffle(n.x(), op.factor); },
          {.cases = 20}),
      row<PixelUnshuffle>(
          [](Node n, const PixelUnshuffle& op) { return at::pixel_unshuffle(n.x(), op.factor); },
          {.draw = draw_pixel_unshuffle, .cases = 20}),
      row<ChannelShuffle>(
          [](Node n, const ChannelShuffle& op) {
            const int64_t channels = n.x().size(1);
            return n.x()
                .unflatten(1, {op.groups, channels / op.groups})
                .transpose(1, 2)
                .flatten(1, 2);
          },
          {.draw = draw_channel_shuffle, .cases = 10, .layer = true}),
      row<ChannelPad>(channel_pad, {.draw = draw_channel_pad, .cases = 10, .layer = true}),
  };
  return table;
}

const OperatorRow& row_of(const Operator& op) {
  const auto& table = operator_table();
  const auto found = std::ranges::find(table, kind(op), &OperatorRow::name);
  ensure(found != table.end(), "{} has no row in the tests' table of operators", kind(op));
  return *found;
}

}  // namespace mpi4dl::testing
