// Maps of other sizes: interpolation, padding and cropping.
#include <algorithm>
#include <array>

#include "import/baked.hpp"
#include "import/table.hpp"

namespace mpi4dl {
namespace {

/// Returns the size of a result. A number in the file that is the exported image's means today's
/// image; others are right for one image size only.
Extents result_size(Translation& call, const View& input) {
  const Extents size = call.extents("output_size", input.axes.size() - 2, 1);
  const ImportState& state = call.state();
  if (!state.other_size || !call.literal("output_size")) return size;
  if (size == state.exported_image) return state.draft.nodes.front().shape.space;
  const Extents& space = call.shape(input).space;
  if (size == exported_space(input.axes) && !space.empty()) return space;
  refuse_baked(call, "size");
  return size;
}

std::vector<double> factors(Translation& call) {
  const Argument* argument = call.call().find("scale_factors");
  const auto* list = argument == nullptr ? nullptr : std::get_if<Argument::List>(&argument->value);
  std::vector<double> found;
  if (list == nullptr) return found;
  for (const Argument& each : *list) {
    const auto* real = std::get_if<double>(&each.value);
    if (real == nullptr) refuse("its scale factor is no number");
    found.push_back(*real);
  }
  return found;
}

/// Brings a map to a size, or enlarges it by factors; a pooled value comes to every pixel.
template <Interpolation mode>
Items resize(Translation& call) {
  if (call.given("scales_h") || call.given("scales")) refuse("it has a size and factors");
  const View input = call.plain(call.given("input") ? "input" : "self");
  const bool pooled = !call.shape(input).spatial();
  const std::vector<double> by = factors(call);
  const bool corners = call.flag("align_corners", false);
  if (pooled && !by.empty()) refuse("it enlarges a pooled value by a factor, not to a size");
  if (!by.empty())
    return {call.add(Resize{.factor = by, .mode = mode, .align_corners = corners}, {input})};
  const Extents space = result_size(call, input);
  if (pooled) return {call.add(Broadcast{.space = space}, {input})};
  return {call.add(Resize{.space = space, .mode = mode, .align_corners = corners}, {input})};
}

/// Adds channels of zeros.
View pad_channels(Translation& call, const View& input, int64_t before, int64_t after,
                  const Pad& rule) {
  if (before == 0 && after == 0) return input;
  if (rule.mode != PadMode::constant || rule.value != 0) refuse("it adds channels that are not 0");
  return call.add(ChannelPad{.before = before, .after = after}, {input});
}

/// Reads amounts in PyTorch's order, from the last axis on: before, after, before, ... The axis of
/// images may be among them.
std::vector<int64_t> padding_amounts(Translation& call, const std::string& name, size_t axes) {
  std::vector<int64_t> amounts = call.integers(name);
  const bool of_images = axes > 0 && amounts.size() == 2 * axes;
  if (of_images && amounts[2 * axes - 2] == 0 && amounts[2 * axes - 1] == 0)
    amounts.resize(2 * (axes - 1));
  return amounts;
}

/// Amounts for channels, behind those for pixels, say that zeros before them were written so.
void check_amounts(Translation& call, const std::string& name, const View& input,
                   const std::vector<int64_t>& amounts) {
  const size_t spatial = std::min(amounts.size(), 2 * call.shape(input).space.size());
  const auto is_zero = [](int64_t amount) { return amount == 0; };
  if (!call.literal(name)) return;
  if (!std::all_of(amounts.begin(), amounts.begin() + static_cast<int64_t>(spatial), is_zero))
    refuse_baked(call, "padding");
  else if (std::ranges::all_of(amounts, is_zero))
    check_no_padding(call, input);
}

Items pad_by(Translation& call, const std::string& name, Pad rule) {
  const View input = call.map("self");
  const std::vector<int64_t> amounts = padding_amounts(call, name, input.axes.size());
  const size_t spatial = call.shape(input).space.size();
  if (amounts.size() % 2 != 0 || amounts.size() > 2 * (spatial + 1))
    refuse("its {} numbers do not fit the axes of {}", amounts.size(), to_string(input.axes));
  check_amounts(call, name, input, amounts);
  rule.before = rule.after = Extents(spatial, 0);
  for (size_t i = 0; i < std::min(amounts.size() / 2, spatial); ++i) {
    rule.before[spatial - 1 - i] = amounts[2 * i];
    rule.after[spatial - 1 - i] = amounts[2 * i + 1];
  }
  View result = input;
  if (rule.before != Extents(spatial, 0) || rule.after != Extents(spatial, 0))
    result = call.add(rule, {input});
  if (amounts.size() > 2 * spatial)
    result = pad_channels(call, result, amounts[2 * spatial], amounts[2 * spatial + 1], rule);
  return {result};
}

PadMode mode_of(const std::string& name) {
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "replicate") return PadMode::replicate;
  if (name == "circular") return PadMode::circular;
  refuse("its mode '{}' is not known", name);
}

Items pad(Translation& call) {
  return pad_by(call, "pad",
                {.mode = mode_of(call.text("mode", "constant")), .value = call.number("value", 0)});
}
Items reflection_pad(Translation& call) {
  return pad_by(call, "padding", {.mode = PadMode::reflect});
}
Items replication_pad(Translation& call) {
  return pad_by(call, "padding", {.mode = PadMode::replicate});
}

constexpr std::array kResizingRows{
    TableRow{"upsample_nearest2d", resize<Interpolation::nearest>},
    TableRow{"upsample_nearest3d", resize<Interpolation::nearest>},
    TableRow{"_upsample_nearest_exact2d", resize<Interpolation::nearest_exact>},
    TableRow{"_upsample_nearest_exact3d", resize<Interpolation::nearest_exact>},
    TableRow{"upsample_bilinear2d", resize<Interpolation::bilinear>},
    TableRow{"upsample_trilinear3d", resize<Interpolation::bilinear>},
    TableRow{"upsample_bicubic2d", resize<Interpolation::bicubic>},
    TableRow{"pad", pad},
    TableRow{"constant_pad_nd", pad},
    TableRow{"reflection_pad2d", reflection_pad},
    TableRow{"reflection_pad3d", reflection_pad},
    TableRow{"replication_pad2d", replication_pad},
    TableRow{"replication_pad3d", replication_pad},
};

}  // namespace

std::span<const TableRow> resizing_rows() {
  return kResizingRows;
}

}  // namespace mpi4dl
