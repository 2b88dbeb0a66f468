// Convolutions, poolings and linear layers.
#include <algorithm>
#include <array>

#include "import/baked.hpp"
#include "import/parts.hpp"
#include "import/table.hpp"

namespace mpi4dl {
namespace {

/// Returns how many spatial axes "conv2d" and "max_pool3d" have.
size_t axes_of(const Call& call) {
  return call.target.find("3d") != std::string::npos ? 3 : 2;
}

/// Returns the input: a map, or a pooled value, which a kernel of one pixel may read.
View window_input(Translation& call, const Extents& kernel) {
  View input = call.plain("input");
  const bool one_pixel = positions(kernel) == 1;
  const Shape& shape = call.shape(input);
  if (!shape.spatial() && !one_pixel)
    refuse("a kernel of {} cannot read a pooled value", to_string(kernel));
  if (shape.spatial() && shape.space.size() != kernel.size())
    refuse("a kernel of {} cannot read a map of {}", to_string(kernel), to_string(shape));
  return input;
}

/// Keeps a pooled value one: its axes of one pixel are not spatial ones.
View with_axes_of(const View& input, View result) {
  if (input.axes.size() > result.axes.size()) result.axes.resize(input.axes.size());
  return result;
}

Weight kernel_weight(Translation& call, size_t spatial_axes) {
  const std::optional<Weight> weight = call.weight("weight");
  if (!weight || weight->shape.size() != spatial_axes + 2) refuse("its weight is no kernel");
  return *weight;
}

void check_same(Translation& call, const Extents& kernel, Convolution& conv) {
  const std::string rule = call.text("padding", "valid");
  if (rule == "valid") return;
  conv.padding_end.clear();
  conv.padding.clear();
  for (size_t axis = 0; axis < kernel.size(); ++axis) {
    const int64_t all = conv.dilation[axis] * (kernel[axis] - 1);
    conv.padding.push_back(all / 2);
    conv.padding_end.push_back(all - all / 2);
  }
  if (conv.padding == conv.padding_end) conv.padding_end.clear();
}

Items convolution(Translation& call) {
  const size_t axes = axes_of(call.call());
  const Weight weight = kernel_weight(call, axes);
  const Extents kernel(weight.shape.begin() + 2, weight.shape.end());
  const bool by_rule = call.call().overload == "padding";
  const std::optional<Weight> bias = call.weight("bias");
  Convolution conv{.out_channels = weight.shape[0],
                   .kernel = kernel,
                   .stride = call.extents("stride", axes, 1),
                   .padding = by_rule ? Extents(axes, 0) : call.extents("padding", axes, 0),
                   .dilation = call.extents("dilation", axes, 1),
                   .groups = call.integer("groups", 1),
                   .bias = bias.has_value()};
  if (by_rule) check_same(call, kernel, conv);
  const View input = window_input(call, kernel);
  std::vector<std::optional<Weight>> weights{weight};
  if (bias) weights.push_back(bias);
  return {with_axes_of(input, call.add(conv, {input}, weights))};
}

Items transposed_convolution(Translation& call) {
  const size_t axes = axes_of(call.call());
  const Weight weight = kernel_weight(call, axes);
  const std::optional<Weight> bias = call.weight("bias");
  const int64_t groups = call.integer("groups", 1);
  const TransposedConvolution conv{.out_channels = weight.shape[1] * groups,
                                   .kernel = {weight.shape.begin() + 2, weight.shape.end()},
                                   .stride = call.extents("stride", axes, 1),
                                   .padding = call.extents("padding", axes, 0),
                                   .dilation = call.extents("dilation", axes, 1),
                                   .output_padding = call.extents("output_padding", axes, 0),
                                   .groups = groups,
                                   .bias = bias.has_value()};
  std::vector<std::optional<Weight>> weights{weight};
  if (bias) weights.push_back(bias);
  return {call.add(conv, {call.map("input")}, weights)};
}

/// Takes an empty stride for the kernel, as PyTorch does.
Extents pool_stride(Translation& call, const Extents& kernel) {
  const std::vector<int64_t> stride = call.integers("stride");
  return stride.empty() ? kernel : call.extents("stride", kernel.size(), 1);
}

Items max_pool(Translation& call) {
  const size_t axes = axes_of(call.call());
  const Extents kernel = call.extents("kernel_size", axes, 1);
  check_kernel(call, call.map("self"), kernel, /*usual=*/true);
  return {call.add(MaxPool{.kernel = kernel,
                           .stride = pool_stride(call, kernel),
                           .padding = call.extents("padding", axes, 0),
                           .dilation = call.extents("dilation", axes, 1),
                           .ceil_mode = call.flag("ceil_mode", false)},
                   {call.map("self")})};
}

/// A divisor is that of the operator itself where each window counts all of its pixels.
void check_divisor(Translation& call, const AvgPool& pool) {
  if (!call.given("divisor_override")) return;
  const bool padded = std::ranges::any_of(pool.padding, [](int64_t each) { return each != 0; });
  const bool all_count = !pool.ceil_mode && (pool.count_include_pad || !padded);
  if (!all_count || call.integer("divisor_override") != positions(pool.kernel))
    refuse("its divisor_override is not the number of pixels of each window");
}

Items avg_pool(Translation& call) {
  const size_t axes = axes_of(call.call());
  const Extents kernel = call.extents("kernel_size", axes, 1);
  const AvgPool pool{.kernel = kernel,
                     .stride = pool_stride(call, kernel),
                     .padding = call.extents("padding", axes, 0),
                     .ceil_mode = call.flag("ceil_mode", false),
                     .count_include_pad = call.flag("count_include_pad", true)};
  check_divisor(call, pool);
  check_kernel(call, call.map("self"), kernel, /*usual=*/false);
  return {call.add(pool, {call.map("self")})};
}

/// Returns a vector with an axis of one pixel for each of the spatial ones.
View pooled_view(View vector, size_t spatial_axes) {
  vector.axes.resize(2 + spatial_axes);
  return vector;
}

Items adaptive_pool(Translation& call, const Operator& whole, bool average) {
  const size_t axes = axes_of(call.call());
  const View input = call.plain("self");
  const Extents size = call.extents("output_size", axes, 1);
  if (!call.shape(input).spatial() && positions(size) == 1) return {input};
  const View map = call.map("self");
  if (positions(size) == 1) return {pooled_view(call.add(whole, {map}), axes)};
  check_pooled_size(call, map, size);
  if (size == call.shape(map).space) return {map};
  if (!average) refuse("the largest pixels of {} windows are not known", to_string(size));
  return {call.add(AdaptiveAvgPool{.size = size}, {map})};
}

Items adaptive_avg_pool(Translation& call) {
  return adaptive_pool(call, GlobalAvgPool{}, /*average=*/true);
}
Items adaptive_max_pool(Translation& call) {
  return adaptive_pool(call, GlobalMaxPool{}, /*average=*/false);
}

/// Returns whether all spatial axes of a map are among these, and nothing else.
bool pools_all_pixels(Translation& call, const View& input, const std::vector<int64_t>& dims) {
  size_t spatial = 0;
  for (const int64_t dim : dims) {
    const Axis& axis = input.axes[call.axis(input, dim)];
    if (!is_space(axis)) return false;
    ++spatial;
  }
  return spatial == call.shape(input).space.size();
}

/// Returns the view that is left when some axes are pooled.
View without_pooled(Translation& call, const View& input, const View& pooled,
                    const std::vector<int64_t>& dims) {
  std::vector<bool> gone(input.axes.size());
  for (const int64_t dim : dims) gone[call.axis(input, dim)] = true;
  const bool keep = call.flag("keepdim", false);
  View result{pooled.node, {}};
  for (size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) result.axes.push_back(input.axes[i]);
    if (gone[i] && keep) result.axes.emplace_back();
  }
  return result;
}

Items pool_axes(Translation& call, const Operator& whole) {
  const View input = call.view("self");
  const std::vector<int64_t> dims = call.integers("dim");
  const Shape& shape = call.shape(input);
  if (!shape.spatial() || !are_permuted(input.axes, shape) || !pools_all_pixels(call, input, dims))
    refuse("it takes axes together that are not exactly the pixels of a map");
  return {without_pooled(call, input, call.add(whole, {input}), dims)};
}

/// Takes the mean of branches, which are one axis of the value; nothing where they are not.
std::optional<View> mean_of_branches(Translation& call, const View& input) {
  const std::vector<int64_t> dims = call.integers("dim");
  if (dims.size() != 1) return std::nullopt;
  const size_t axis = call.axis(input, dims[0]);
  const auto total = sum_along(call, input, axis, call.flag("keepdim", false));
  if (!total) return std::nullopt;
  const double share = 1 / static_cast<double>(length(input.axes[axis]));
  return call.add_pointwise(Pointwise{.function = PointwiseFunction::scale, .a = share}, *total);
}

Items mean(Translation& call) {
  if (const auto branches = mean_of_branches(call, call.view("self"))) return {*branches};
  return pool_axes(call, GlobalAvgPool{});
}
Items largest(Translation& call) {
  return pool_axes(call, GlobalMaxPool{});
}

/// On the last axis of a map it is a convolution of one pixel, whose weight has no kernel's axes.
Items linear(Translation& call) {
  const View input = call.view("input");
  const Shape& shape = call.shape(input);
  const std::optional<Weight> weight = call.weight("weight"), bias = call.weight("bias");
  if (!weight || weight->shape.size() != 2) refuse("its weight is no matrix");
  if (!are_permuted(input.axes, shape) || !is_channels(input.axes.back(), shape.channels))
    refuse("it reads a view of {} whose last axis is not that of channels", to_string(input.axes));
  std::vector<std::optional<Weight>> weights{weight};
  if (bias) weights.push_back(bias);
  const int64_t features = weight->shape[0];
  if (!shape.spatial())
    return {call.add_pointwise(Linear{.out_features = features, .bias = bias.has_value()}, input,
                               weights)};
  return {call.add_pointwise(Convolution{.out_channels = features,
                                         .kernel = Extents(shape.space.size(), 1),
                                         .bias = bias.has_value()},
                             input, weights)};
}

/// On the channels of a pooled value, as images of one channel and one axis.
Items channel_convolution(Translation& call) {
  const View input = call.view("input");
  const Shape& shape = call.shape(input);
  const bool in_order = input.axes.size() == 3 && is_batch(input.axes[0]) &&
                        input.axes[1].empty() && is_channels(input.axes[2], shape.channels);
  if (shape.spatial() || !in_order)
    refuse("it reads a view of {}, and is known on the channels of a pooled value alone",
           to_string(input.axes));
  const std::optional<Weight> weight = call.weight("weight"), bias = call.weight("bias");
  if (!weight || weight->shape.size() != 3 || positions(weight->shape) != weight->shape[2])
    refuse("its weight is no kernel of one channel");
  const int64_t kernel = weight->shape[2];
  const bool same = call.extents("padding", 1, 0) == Extents{kernel / 2} &&
                    call.extents("stride", 1, 1) == Extents{1} &&
                    call.extents("dilation", 1, 1) == Extents{1};
  if (!same) refuse("it does not keep the number of channels");
  std::vector<std::optional<Weight>> weights{weight};
  if (bias) weights.push_back(bias);
  return {call.add_pointwise(ChannelConvolution{.kernel = kernel, .bias = bias.has_value()}, input,
                             weights)};
}

constexpr std::array kWindowRows{
    TableRow{"conv1d", channel_convolution},
    TableRow{"conv2d", convolution},
    TableRow{"conv3d", convolution},
    TableRow{"conv_transpose2d", transposed_convolution},
    TableRow{"conv_transpose3d", transposed_convolution},
    TableRow{"max_pool2d", max_pool},
    TableRow{"max_pool3d", max_pool},
    TableRow{"avg_pool2d", avg_pool},
    TableRow{"avg_pool3d", avg_pool},
    TableRow{"adaptive_avg_pool2d", adaptive_avg_pool},
    TableRow{"adaptive_avg_pool3d", adaptive_avg_pool},
    TableRow{"adaptive_max_pool2d", adaptive_max_pool},
    TableRow{"adaptive_max_pool3d", adaptive_max_pool},
    TableRow{"mean", mean},
    TableRow{"amax", largest},
    TableRow{"linear", linear},
};

}  // namespace

std::span<const TableRow> window_rows() {
  return kWindowRows;
}

}  // namespace mpi4dl
