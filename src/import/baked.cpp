#include "import/baked.hpp"

#include <algorithm>
#include <cmath>

namespace mpi4dl {
namespace {

constexpr int64_t kUsualKernel = 3;
constexpr double kMostReduced = 1e9;
constexpr const char* kPooling = "torch.nn.modules.pooling.";

bool of_module(const Translation& call, const std::string& modules) {
  return call.call().module_class.starts_with(modules);
}

int64_t largest(const Extents& numbers) {
  return numbers.empty() ? 1 : std::max<int64_t>(1, std::ranges::max(numbers));
}

/// Counts the axes of a map that had these lengths when the file was written.
int matches(const View& input, const Extents& lengths) {
  const Extents exported = exported_space(input.axes);
  int count = 0;
  for (size_t axis = 0; axis < std::min(lengths.size(), exported.size()); ++axis)
    count += lengths[axis] > 1 && lengths[axis] == exported[axis] ? 1 : 0;
  return count;
}

/// Returns whether a map before had this size, and not because a pool was told to make it so.
bool is_of_another_map(const ImportState& state, const Extents& size) {
  return state.exported_maps.contains(size) && !state.pooled_sizes.contains(size);
}

/// Returns the largest number of a call's stride; that of its kernel where a pool has no stride.
int64_t stride_of(const Call& call) {
  const Argument* stride = call.find("stride");
  const auto* list = stride == nullptr ? nullptr : std::get_if<Argument::List>(&stride->value);
  if ((list == nullptr || list->empty()) && call.target.find("pool") != std::string::npos)
    stride = call.find("kernel_size");
  list = stride == nullptr ? nullptr : std::get_if<Argument::List>(&stride->value);
  int64_t largest = 1;
  for (const Argument& each : list == nullptr ? Argument::List{} : *list)
    if (const auto* number = std::get_if<int64_t>(&each.value))
      largest = std::max(largest, *number);
  return largest;
}

}  // namespace

void refuse_baked(Translation& call, const std::string& what) {
  // These modules pad by amounts that their constructor was given.
  const bool constant =
      of_module(call, "torch.nn.modules.padding.") || of_module(call, "torch.nn.modules.conv.");
  if (call.state().other_size && !constant)
    refuse(
        "its {} is a number that may come from the size of the exported image, {}; export the "
        "model at the size at which it is trained, or with dynamic_shapes",
        what, to_string(call.state().exported_image));
}

void check_kernel(Translation& call, const View& input, const Extents& kernel, bool usual) {
  if (!call.state().other_size || !call.literal("kernel_size") || of_module(call, kPooling)) return;
  const bool small = largest(kernel) <= kUsualKernel;
  if (small && usual) return;
  if (matches(input, kernel) > 0 || (!small && is_of_another_map(call.state(), kernel)))
    refuse_baked(call, "kernel");
}

/// A module's size may have a None, of which the length of the axis has become: (None, 2) is 8x2.
void check_pooled_size(Translation& call, const View& input, const Extents& size) {
  ImportState& state = call.state();
  if (!state.other_size || !call.literal("output_size")) return;
  const int found = matches(input, size);
  const bool square = std::ranges::all_of(size, [&](int64_t each) { return each == size[0]; });
  const bool with_none = !square && found > 0 && found < std::ssize(size);
  const bool of_maps = found > 0 || (positions(size) > 1 && is_of_another_map(state, size));
  if (of_module(call, kPooling) ? with_none : of_maps) refuse_baked(call, "size");
  state.pooled_sizes.insert(size);
}

void check_no_padding(Translation& call, const View& input) {
  const ImportState& state = call.state();
  if (!state.other_size) return;
  const auto reader = state.reader_strides.find(call.call().results.front());
  const int64_t before = state.draft.nodes[input.node].stride;
  const int64_t after = reader == state.reader_strides.end() ? 1 : reader->second;
  const Extents& image = state.draft.nodes.front().shape.space;
  for (size_t axis = 0; axis < image.size(); ++axis) {
    const int64_t exported = state.exported_image[axis];
    const int64_t difference = exported < 0 ? 0 : image[axis] - exported;
    if (difference % before != 0 || difference / before % after != 0) refuse_baked(call, "padding");
  }
}

std::map<std::string, int64_t> strides_of_readers(const Program& program) {
  std::map<std::string, int64_t> strides;
  for (const Call& call : program.calls) {
    const int64_t stride = stride_of(call);
    if (stride == 1 || call.arguments.empty()) continue;
    if (const auto* value = std::get_if<Reference>(&call.arguments.front().second.value))
      strides[value->name] = std::max(strides[value->name], stride);
  }
  return strides;
}

int64_t stride_of(const Operator& op) {
  if (const auto* conv = std::get_if<Convolution>(&op)) return largest(conv->stride);
  if (const auto* pool = std::get_if<MaxPool>(&op)) return largest(pool->stride);
  if (const auto* pool = std::get_if<AvgPool>(&op)) return largest(pool->stride);
  if (const auto* pixels = std::get_if<PixelUnshuffle>(&op)) return pixels->factor;
  const auto* resize = std::get_if<Resize>(&op);
  if (resize == nullptr || resize->factor.empty()) return 1;
  return std::llround(std::clamp(1 / std::ranges::min(resize->factor), 1.0, kMostReduced));
}

}  // namespace mpi4dl
