// Dropout, and the random masks that are multiplied by hand to drop whole images (drop path).
#include <array>
#include <utility>

#include "import/table.hpp"

namespace mpi4dl {
namespace {

/// Trains with the dropout that an export in evaluation mode still names; where others are in train
/// mode, one that is not does nothing.
Items drop(Translation& call, DropoutUnit unit) {
  const View input = call.view(call.given("input") ? "input" : "self");
  const double probability = call.number("p", 0.5);
  const bool trained = call.flag("train", true);
  if (probability == 0 || (!trained && call.state().trains)) return {input};
  call.state().evaluation |= !trained;
  const bool of_channels = input.axes.size() > 1 && is_batch(input.axes[0]) &&
                           is_channels(input.axes[1], call.shape(input).channels);
  if (unit == DropoutUnit::channel && !of_channels)
    refuse("it drops whole parts of a view of {} whose second axis is not that of channels",
           to_string(input.axes));
  return {call.add_pointwise(Dropout{.probability = probability, .per = unit}, input)};
}

Items dropout(Translation& call) {
  return drop(call, DropoutUnit::element);
}
Items feature_dropout(Translation& call) {
  return drop(call, DropoutUnit::channel);
}

Items empty(Translation& call) {
  return {Noise{.shape = call.integers("size")}};
}
Items empty_like(Translation& call) {
  return {Noise{.shape = lengths(call.view("self").axes)}};
}

Items uniform(Translation& call, std::vector<int64_t> shape) {
  return {Noise{
      .shape = std::move(shape), .stage = Noise::Stage::uniform, .number = ++call.state().masks}};
}
Items rand(Translation& call) {
  return uniform(call, call.integers("size"));
}
Items rand_like(Translation& call) {
  return uniform(call, lengths(call.view("self").axes));
}

Noise noise_of(Translation& call) {
  const Item found = call.item("self");
  const auto* noise = std::get_if<Noise>(&found);
  if (noise == nullptr) refuse("it is known only where it makes a mask for dropout");
  return *noise;
}

Items bernoulli(Translation& call) {
  Noise noise = noise_of(call);
  noise.stage = Noise::Stage::mask;
  noise.keep = call.number("p", 0.5);
  noise.number = ++call.state().masks;
  return {noise};
}

/// The sum of a probability and a random number in [0, 1) is 1 or more with that probability.
Items floor_of(Translation& call) {
  Noise noise = noise_of(call);
  if (noise.stage != Noise::Stage::shifted) refuse("it rounds random numbers that make no mask");
  noise.stage = Noise::Stage::mask;
  return {noise};
}

constexpr std::array kNoiseRows{
    TableRow{"dropout", dropout},       TableRow{"feature_dropout", feature_dropout},
    TableRow{"empty", empty},           TableRow{"new_empty", empty},
    TableRow{"empty_like", empty_like}, TableRow{"rand", rand},
    TableRow{"rand_like", rand_like},   TableRow{"bernoulli", bernoulli},
    TableRow{"floor", floor_of},
};

}  // namespace

std::span<const TableRow> noise_rows() {
  return kNoiseRows;
}

}  // namespace mpi4dl
