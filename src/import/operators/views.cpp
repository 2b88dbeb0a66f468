// Views, which are no operators of a graph: what they do is written into the axes of a value.
#include <algorithm>
#include <array>

#include "import/baked.hpp"
#include "import/table.hpp"

namespace mpi4dl {
namespace {

using Sizes = std::vector<int64_t>;

/// Returns the channels that a shuffle reads group after group; 0 where the axis is something else.
int64_t shuffled_groups(const Axis& axis, int64_t channels) {
  if (axis.size() != 2) return 0;
  const Factor &outer = axis[0], &inner = axis[1];
  const bool swapped = outer.of == Factor::Of::channels && inner.of == Factor::Of::channels &&
                       outer.step == 1 && inner.step == outer.size &&
                       outer.size * inner.size == channels;
  return swapped ? inner.size : 0;
}

/// Returns whether an axis holds channels and all pixels, in their order in memory.
bool is_flat(const Axis& axis, const Shape& shape) {
  if (axis.size() != 1 + shape.space.size()) return false;
  for (size_t i = 1; i < axis.size(); ++i)
    if (axis[i].of != Factor::Of::space || axis[i].axis != static_cast<int>(i) - 1) return false;
  return is_channels({axis[0]}, shape.channels);
}

/// Takes numbers that were computed for the exported size as those of today's, where they fit.
View regroup_view(Translation& call, const View& input, const Sizes& sizes, bool literal) {
  std::optional<Axes> axes = regroup(input.axes, sizes, /*exported=*/false);
  if (literal && call.state().other_size) axes = regroup(input.axes, sizes, /*exported=*/true);
  if (!axes)
    refuse("it brings a value of {} to a shape that is no regrouping of its axes{}",
           to_string(input.axes),
           literal && call.state().other_size
               ? "; export the model at the size at which it is trained, or with dynamic_shapes"
               : "");
  return settle(call, {input.node, std::move(*axes)});
}

std::string size_argument(Translation& call) {
  return call.given("shape") ? "shape" : "size";
}

Items reshape(Translation& call) {
  const std::string name = size_argument(call);
  return {regroup_view(call, call.view("self"), call.integers(name), call.literal(name))};
}

Items reshape_as(Translation& call) {
  return {regroup_view(call, call.view("self"), lengths(call.view("other").axes), false)};
}

Items flatten(Translation& call) {
  const View input = call.view("self");
  const size_t first = call.axis(input, call.integer("start_dim", 0));
  const size_t last = call.axis(input, call.integer("end_dim", -1));
  if (first > last) refuse("its first axis {} comes after its last, {}", first, last);
  View result{input.node, {input.axes.begin(), input.axes.begin() + static_cast<int64_t>(first)}};
  Axis joined;
  for (size_t i = first; i <= last; ++i)
    joined.insert(joined.end(), input.axes[i].begin(), input.axes[i].end());
  result.axes.push_back(std::move(joined));
  result.axes.insert(result.axes.end(), input.axes.begin() + static_cast<int64_t>(last) + 1,
                     input.axes.end());
  join_channels(result.axes);
  return {settle(call, std::move(result))};
}

Items unflatten(Translation& call) {
  const View input = call.view("self");
  const size_t axis = call.axis(input, call.integer("dim"));
  Sizes sizes = lengths(input.axes);
  const Sizes parts = call.integers("sizes");
  sizes.erase(sizes.begin() + static_cast<int64_t>(axis));
  sizes.insert(sizes.begin() + static_cast<int64_t>(axis), parts.begin(), parts.end());
  return {regroup_view(call, input, sizes, false)};
}

/// Says of each axis whether it is to go: it must have no more than one element, and be no batch.
Items squeeze(Translation& call) {
  const View input = call.view("self");
  std::vector<bool> chosen(input.axes.size(), !call.given("dim"));
  for (const int64_t dim : call.integers("dim")) chosen[call.axis(input, dim)] = true;
  View result{input.node, {}};
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Axis& axis = input.axes[i];
    const bool one = length(axis) == 1;
    if (chosen[i] && one && is_batch(axis))
      refuse("it takes away the axis of images, of which there was one; export with a batch of 2");
    if (chosen[i] && one && !axis.empty() && result.axes.empty())
      refuse("it takes away the first axis");
    if (chosen[i] && one && !axis.empty())
      result.axes.back().insert(result.axes.back().end(), axis.begin(), axis.end());
    if (!chosen[i] || !one) result.axes.push_back(axis);
  }
  return {settle(call, std::move(result))};
}

Items unsqueeze(Translation& call) {
  View view = call.view("self");
  const auto axes = static_cast<int64_t>(view.axes.size());
  const int64_t dim = call.integer("dim");
  if (dim < -axes - 1 || dim > axes) refuse("there is no place {} for an axis", dim);
  view.axes.insert(view.axes.begin() + (dim < 0 ? dim + axes + 1 : dim), Axis{});
  return {view};
}

Items permute(Translation& call) {
  const View input = call.view("self");
  const Sizes dims = call.integers("dims");
  if (dims.size() != input.axes.size()) refuse("it does not name every axis");
  View result{input.node, {}};
  std::vector<bool> used(dims.size());
  for (const int64_t dim : dims) {
    const size_t axis = call.axis(input, dim);
    if (used[axis]) refuse("it names an axis twice");
    used[axis] = true;
    result.axes.push_back(input.axes[axis]);
  }
  return {settle(call, std::move(result))};
}

Items transpose(Translation& call) {
  View view = call.view("self");
  std::swap(view.axes[call.axis(view, call.integer("dim0"))],
            view.axes[call.axis(view, call.integer("dim1"))]);
  return {settle(call, std::move(view))};
}

bool is_floating(Translation& call, const Weight& weight) {
  const auto& tensors = call.state().program.tensors->tensors();
  return weight.value.defined() || c10::isFloatingType(tensors.at(weight.name).type);
}

/// Copies do nothing: a graph has values that nobody changes.
Items same(Translation& call) {
  if (call.call().arguments.empty()) refuse("it has no argument");
  return {call.item(call.call().arguments.front().first)};
}

/// Values have one type, so that a conversion to it does nothing, as one to another tensor's.
Items converted(Translation& call) {
  if (!call.given("other")) return same(call);
  const Item other = call.item("other");
  const auto* weight = std::get_if<Weight>(&other);
  const bool real = weight == nullptr ? std::holds_alternative<View>(other) ||
                                            std::holds_alternative<double>(other)
                                      : weight->formula || is_floating(call, *weight);
  if (!real) refuse("it makes whole numbers or truth values of its input");
  return same(call);
}

/// Puts a pooled value at every pixel, or does nothing.
Items expand_to(Translation& call, const View& input, const Sizes& sizes) {
  const Sizes now = lengths(input.axes);
  if (sizes.size() != now.size()) refuse("it adds axes");
  Extents space;
  bool same = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t size = sizes[i] == -1 ? now[i] : sizes[i];
    same = same && size == now[i];
    if (i >= 2) space.push_back(size);
    if (i < 2 && size != now[i]) refuse("it repeats images or channels");
  }
  if (same) return {input};
  const View vector = call.plain("self");
  if (call.shape(vector).spatial()) refuse("it repeats pixels of a map");
  return {call.add(Broadcast{.space = space}, {vector})};
}

Items expand(Translation& call) {
  const View input = call.view("self");
  const Sizes sizes = call.integers("size");
  if (call.literal("size") && std::ranges::any_of(sizes, [](int64_t n) { return n > 1; }) &&
      sizes != lengths(input.axes))
    refuse_baked(call, "size");
  return expand_to(call, input, sizes);
}

Items expand_as(Translation& call) {
  return expand_to(call, call.view("self"), lengths(call.view("other").axes));
}

constexpr std::array kViewRows{
    TableRow{"view", reshape, true},          TableRow{"reshape", reshape, true},
    TableRow{"_unsafe_view", reshape, true},  TableRow{"view_as", reshape_as, true},
    TableRow{"reshape_as", reshape_as, true}, TableRow{"flatten", flatten, true},
    TableRow{"unflatten", unflatten, true},   TableRow{"squeeze", squeeze, true},
    TableRow{"unsqueeze", unsqueeze, true},   TableRow{"permute", permute, true},
    TableRow{"transpose", transpose, true},   TableRow{"expand", expand, true},
    TableRow{"expand_as", expand_as, true},   TableRow{"contiguous", same, true},
    TableRow{"to", converted, true},          TableRow{"type_as", converted, true},
    TableRow{"_to_copy", converted},          TableRow{"alias", same, true},
    TableRow{"lift_fresh_copy", same},        TableRow{"clone", same},
};

}  // namespace

View settle(Translation& call, View view) {
  const Shape& shape = call.shape(view);
  if (view.axes.size() < 2 || !is_batch(view.axes[0])) return view;
  if (shape.spatial() && view.axes.size() == 2 && is_flat(view.axes[1], shape))
    return call.add(Flatten{}, {view});
  if (const int64_t groups = shuffled_groups(view.axes[1], shape.channels); groups > 0) {
    Axes plain = view.axes;
    plain[1] = {{.of = Factor::Of::channels, .size = shape.channels, .exported = shape.channels}};
    if (are_plain(plain, shape)) return call.add(ChannelShuffle{.groups = groups}, {view});
  }
  return view;
}

std::span<const TableRow> view_rows() {
  return kViewRows;
}

}  // namespace mpi4dl
