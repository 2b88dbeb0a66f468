// Norms: over images and pixels (batch norm), over the pixels of one image, over channels.
#include <array>

#include "import/table.hpp"

namespace mpi4dl {
namespace {

using Weights = std::vector<std::optional<Weight>>;

/// Returns weight and bias; nothing where the norm has neither.
Weights scale_weights(Translation& call) {
  const std::optional<Weight> weight = call.weight("weight"), bias = call.weight("bias");
  if (weight.has_value() != bias.has_value()) refuse("it has one of weight and bias, not both");
  return weight ? Weights{weight, bias} : Weights{};
}

/// momentum=None, a mean over all batches, is in a file as a number that is right for one batch.
double momentum_of(Translation& call, bool frozen) {
  const double momentum = call.number("momentum", 0.1);
  if (!frozen && (momentum == 0 || momentum == 1))
    refuse("its momentum is {}, which momentum=None becomes in a file; give it a number", momentum);
  return momentum;
}

/// Where others are in train mode, one that is not normalises by its running statistics.
Items batch_norm(Translation& call) {
  const bool trained = call.flag("training", true);
  if (!call.given("running_mean") || !call.given("running_var"))
    refuse(
        "it has no running statistics (track_running_stats=False), so that what it does to an "
        "image after training would depend on the others of its batch");
  Weights weights = scale_weights(call);
  const bool frozen = !trained && call.state().trains;
  const BatchNorm norm{.eps = call.number("eps", 1e-5),
                       .momentum = momentum_of(call, frozen),
                       .affine = !weights.empty(),
                       .frozen = frozen};
  weights.push_back(call.weight("running_mean"));
  weights.push_back(call.weight("running_var"));
  call.state().evaluation |= !trained && !frozen;
  return {call.add_pointwise(norm, call.plain("input"), weights)};
}

/// Normalises each channel of each image.
Items instance_norm(Translation& call) {
  if (call.given("running_mean"))
    refuse("it has running statistics, which are not those of one image");
  const Weights weights = scale_weights(call);
  const View input = call.map("input");
  return {call.add_pointwise(
      GroupNorm{.groups = 0, .eps = call.number("eps", 1e-5), .affine = !weights.empty()}, input,
      weights)};
}

Items group_norm(Translation& call) {
  const Weights weights = scale_weights(call);
  return {call.add_pointwise(GroupNorm{.groups = call.integer("num_groups"),
                                       .eps = call.number("eps", 1e-5),
                                       .affine = !weights.empty()},
                             call.map("input"), weights)};
}

Items layer_norm(Translation& call) {
  const View input = call.view("input");
  const Shape& shape = call.shape(input);
  const std::vector<int64_t> lengths = call.integers("normalized_shape");
  const Weights weights = scale_weights(call);
  if (lengths.size() != 1 || !are_permuted(input.axes, shape) ||
      !is_channels(input.axes.back(), shape.channels))
    refuse("it normalises axes of {} that are not exactly the channels", to_string(input.axes));
  return {call.add_pointwise(
      ChannelNorm{.eps = call.number("eps", 1e-5), .affine = !weights.empty()}, input, weights)};
}

constexpr std::array kNormRows{
    TableRow{"batch_norm", batch_norm},
    TableRow{"instance_norm", instance_norm},
    TableRow{"group_norm", group_norm},
    TableRow{"layer_norm", layer_norm},
};

}  // namespace

std::span<const TableRow> norm_rows() {
  return kNormRows;
}

}  // namespace mpi4dl
