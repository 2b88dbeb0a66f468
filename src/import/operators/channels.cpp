// Parts of channels, and channels put together.
#include <algorithm>
#include <array>
#include <utility>

#include "import/baked.hpp"
#include "import/parts.hpp"
#include "import/table.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kEnd = int64_t{1} << 40;  // which the largest number of a range becomes

bool whole_channels(Translation& call, const View& view, size_t axis) {
  return is_channels(view.axes[axis], call.shape(view).channels);
}

/// Returns channels [begin, end) of a value.
View channel_part(Translation& call, const View& input, int64_t begin, int64_t end) {
  if (begin == 0 && end == call.shape(input).channels) return input;
  return call.add_pointwise(ChannelSlice{.begin = begin, .end = end}, input);
}

Items split_by(Translation& call, const View& input, const std::vector<int64_t>& sizes) {
  const size_t axis = call.axis(input, call.integer("dim", 0));
  if (!whole_channels(call, input, axis)) refuse("it splits an axis that is not that of channels");
  Items parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    if (size < 1 || size > call.shape(input).channels - begin)
      refuse("its parts do not fit {} channels", call.shape(input).channels);
    parts.emplace_back(channel_part(call, input, begin, begin + size));
    begin += size;
  }
  return parts;
}

/// Returns parts of this size, of which the last may be smaller.
Items split_evenly(Translation& call, const View& input, int64_t size) {
  const int64_t all = length(input.axes[call.axis(input, call.integer("dim", 0))]);
  if (size < 1 || all / size >= kMostParts) refuse("its parts have {} of {} channels", size, all);
  std::vector<int64_t> sizes;
  for (int64_t left = all; left > 0; left -= size) sizes.push_back(std::min(size, left));
  return split_by(call, input, sizes);
}

Items chunk(Translation& call) {
  const View input = call.view("self");
  const int64_t all = length(input.axes[call.axis(input, call.integer("dim", 0))]);
  const int64_t chunks = call.integer("chunks");
  if (chunks < 1) refuse("it makes {} parts", chunks);
  return split_evenly(call, input, (all + chunks - 1) / chunks);
}

Items split(Translation& call) {
  return split_evenly(call, call.view("self"), call.integer("split_size"));
}

Items split_with_sizes(Translation& call) {
  return split_by(call, call.view("self"), call.integers("split_sizes"));
}

/// Returns an index as Python means it: negative ones count from the end, and all are bounded.
int64_t bounded_index(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
}

/// A range in the file that was not the whole axis, but for the first steps, is one for the size of
/// that time alone.
void check_range(Translation& call, const Factor& axis, int64_t step) {
  const int64_t most = axis.exported < 0 ? kEnd : axis.exported;
  const bool from = call.literal("start") && bounded_index(call.integer("start"), most) >= step;
  const bool to = call.literal("end") && bounded_index(call.integer("end"), most) < most;
  if (from || to) refuse_baked(call, "range");
}

/// Takes pixels [begin, end) of a spatial axis of a map.
View crop(Translation& call, const View& map, size_t axis, int64_t begin, int64_t end) {
  const Extents& space = call.shape(map).space;
  Pad crop{.before = Extents(space.size(), 0), .after = Extents(space.size(), 0)};
  crop.before[axis - 2] = -begin;
  crop.after[axis - 2] = end - space[axis - 2];
  return crop.before == crop.after && begin == 0 ? map : call.add(crop, {map});
}

/// Takes every so many-th pixel of an axis, as a pool of one pixel does.
View thinned(Translation& call, const View& map, size_t axis, int64_t step) {
  MaxPool pool{.kernel = Extents(call.shape(map).space.size(), 1)};
  pool.stride = pool.kernel;
  pool.stride[axis - 2] = step;
  return step == 1 ? map : call.add(pool, {map});
}

Items slice(Translation& call) {
  const View input = call.view("self");
  const size_t axis = call.axis(input, call.integer("dim", 0));
  const int64_t size = length(input.axes[axis]);
  const int64_t begin = bounded_index(call.integer("start", 0), size);
  const int64_t end = std::max(begin, bounded_index(call.integer("end", size), size));
  const int64_t step = call.integer("step", 1);
  const bool spatial = is_space(input.axes[axis]);
  if (step < 1 || (step > 1 && !spatial)) refuse("its step of {} is not along pixels", step);
  if (spatial) check_range(call, input.axes[axis][0], step);
  if (begin == 0 && end == size && step == 1) return {input};
  if (begin == end) refuse("it leaves nothing of an axis of {}", size);
  if (whole_channels(call, input, axis)) return {channel_part(call, input, begin, end)};
  if (!spatial) refuse("it takes a part of images or of a view");
  return {thinned(call, crop(call, call.map("self"), axis, begin, end), axis, step)};
}

/// Returns whether two views have the same axes; but for one, where it is that of all channels.
bool alike(const View& a, const View& b, std::optional<size_t> but = std::nullopt) {
  if (a.axes.size() != b.axes.size()) return false;
  for (size_t i = 0; i < a.axes.size(); ++i)
    if (i != but && !are_alike(a.axes[i], b.axes[i])) return false;
  return true;
}

View join(Translation& call, const std::vector<View>& parts) {
  if (parts.size() == 1) return parts.front();
  const View joined = call.add(Concat{}, parts);
  return {joined.node, replace_shape(parts.front().axes, call.shape(joined))};
}

Items cat(Translation& call) {
  const std::vector<View> parts = call.views("tensors");
  if (parts.empty()) refuse("it puts nothing together");
  for (const View& part : parts) {
    const size_t axis = call.axis(part, call.integer("dim", 0));
    if (!whole_channels(call, part, axis))
      refuse("it puts values together along an axis that is not that of channels");
    if (!alike(part, parts.front(), axis)) refuse("it puts views of different kinds together");
  }
  return {join(call, parts)};
}

Items stack(Translation& call) {
  const std::vector<View> parts = call.views("tensors");
  if (parts.empty()) refuse("it stacks nothing");
  for (const View& part : parts)
    if (!alike(part, parts.front())) refuse("it stacks views of different kinds");
  const auto axes = static_cast<int64_t>(parts.front().axes.size());
  const int64_t dim = call.integer("dim", 0);
  if (dim < -axes - 1 || dim > axes) refuse("there is no place {} for an axis", dim);
  return {stack_parts(call, parts, static_cast<size_t>(dim < 0 ? dim + axes + 1 : dim))};
}

/// Adds branches, which are one axis of the value.
Items sum(Translation& call) {
  const View input = call.view("self");
  const std::vector<int64_t> dims = call.integers("dim");
  if (dims.size() != 1) refuse("it adds over {} axes", dims.size());
  const std::optional<View> total =
      sum_along(call, input, call.axis(input, dims[0]), call.flag("keepdim", false));
  if (!total) refuse("it adds over an axis that is not one of branches");
  return {*total};
}

/// Takes the only element of an axis, such as those of pooled values.
View without_axis(Translation& call, View view, size_t axis) {
  const int64_t index = call.integer("index");
  if (index != 0 && index != -1) refuse("there is no element {} of 1", index);
  view.axes.erase(view.axes.begin() + static_cast<int64_t>(axis));
  return settle(call, std::move(view));
}

Items select(Translation& call) {
  const View input = call.view("self");
  const size_t axis = call.axis(input, call.integer("dim"));
  if (input.axes[axis].empty()) return {without_axis(call, input, axis)};
  const std::vector<View> parts = parts_along(call, input, axis);
  if (parts.empty()) refuse("it takes one element of an axis that is not one of branches");
  const auto count = static_cast<int64_t>(parts.size());
  const int64_t index = call.integer("index");
  if (index < -count || index >= count) refuse("there is no element {} of {}", index, count);
  return {settle(call, parts[static_cast<size_t>(index < 0 ? index + count : index)])};
}

Items unbind(Translation& call) {
  const View input = call.view("self");
  const std::vector<View> parts =
      parts_along(call, input, call.axis(input, call.integer("dim", 0)));
  if (parts.empty()) refuse("it takes an axis apart that is not one of branches");
  Items items;
  for (const View& part : parts) items.emplace_back(settle(call, part));
  return items;
}

/// Repeats all channels, one copy after the other.
Items repeat(Translation& call) {
  const View input = call.view("self");
  const std::vector<int64_t> times = call.integers("repeats");
  if (times.size() != input.axes.size()) refuse("it adds axes");
  int64_t copies = 1;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] == 1) continue;
    if (!whole_channels(call, input, i) || times[i] < 1 || times[i] > 64)
      refuse("it repeats an axis that is not that of channels");
    copies = times[i];
  }
  return {join(call, std::vector<View>(copies, input))};
}

Items channel_shuffle(Translation& call) {
  return {call.add(ChannelShuffle{.groups = call.integer("groups")}, {call.map("self")})};
}
Items pixel_shuffle(Translation& call) {
  return {call.add(PixelShuffle{.factor = call.integer("upscale_factor")}, {call.map("self")})};
}
Items pixel_unshuffle(Translation& call) {
  return {call.add(PixelUnshuffle{.factor = call.integer("downscale_factor")}, {call.map("self")})};
}

constexpr std::array kChannelRows{
    TableRow{"chunk", chunk, true},
    TableRow{"split", split, true},
    TableRow{"split_with_sizes", split_with_sizes, true},
    TableRow{"slice", slice, true},
    TableRow{"cat", cat},
    TableRow{"concat", cat},
    TableRow{"stack", stack},
    TableRow{"sum", sum},
    TableRow{"select", select, true},
    TableRow{"unbind", unbind, true},
    TableRow{"repeat", repeat},
    TableRow{"channel_shuffle", channel_shuffle},
    TableRow{"native_channel_shuffle", channel_shuffle},
    TableRow{"pixel_shuffle", pixel_shuffle},
    TableRow{"pixel_unshuffle", pixel_unshuffle},
};

}  // namespace

std::span<const TableRow> channel_rows() {
  return kChannelRows;
}

}  // namespace mpi4dl
