#include "import/parts.hpp"

namespace mpi4dl {

std::vector<View> parts_along(Translation& call, const View& view, size_t axis) {
  const int64_t channels = call.shape(view).channels;
  const Axis& factors = view.axes[axis];
  const bool outermost = factors.size() == 1 && factors[0].of == Factor::Of::channels &&
                         factors[0].size < channels &&
                         factors[0].size * factors[0].step == channels;
  if (!outermost) return {};
  if (factors[0].size > kMostParts) refuse("it has {} parts", factors[0].size);
  Axes rest = view.axes;
  rest.erase(rest.begin() + static_cast<int64_t>(axis));
  std::vector<View> parts;
  for (int64_t begin = 0; begin < channels; begin += factors[0].step) {
    const ChannelSlice slice{.begin = begin, .end = begin + factors[0].step};
    parts.push_back({call.add(slice, {view}).node, rest});
  }
  return parts;
}

std::optional<View> sum_along(Translation& call, const View& view, size_t axis, bool keep_axis) {
  const std::vector<View> parts = parts_along(call, view, axis);
  if (parts.empty()) return std::nullopt;
  View total = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) total.node = call.add(Add{}, {total, parts[i]}).node;
  if (keep_axis) total.axes.insert(total.axes.begin() + static_cast<int64_t>(axis), Axis{});
  return settle(call, total);
}

View stack_parts(Translation& call, const std::vector<View>& parts, size_t axis) {
  const int64_t channels = call.shape(parts.front()).channels;
  const auto count = static_cast<int64_t>(parts.size());
  View result{parts.front().node, parts.front().axes};
  if (count > 1) result.node = call.add(Concat{}, parts).node;
  Axis outer;
  if (count > 1)
    outer.push_back(
        {.of = Factor::Of::channels, .size = count, .exported = count, .step = channels});
  result.axes.insert(result.axes.begin() + static_cast<int64_t>(axis), outer);
  return result;
}

}  // namespace mpi4dl
