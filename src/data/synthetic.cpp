#include "data/synthetic.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "backend/random_field.hpp"
#include "base/random.hpp"

namespace mpi4dl {
namespace {

constexpr uint64_t kPhaseKey = 0x7068617365ULL, kLabelKey = 0x6c6162656cULL;

}  // namespace

RandomImages::RandomImages(const SyntheticOptions& options)
    : options_(options), whole_{options.size, options.image.channels} {
  whole_.insert(whole_.end(), options.image.space.begin(), options.image.space.end());
}

int64_t RandomImages::label(int64_t sample) const {
  const double drawn =
      uniform(combine_keys(options_.seed, kLabelKey), static_cast<uint64_t>(sample));
  return static_cast<int64_t>(drawn * static_cast<double>(options_.classes));
}

at::Tensor RandomImages::read(int64_t sample, const Box& box) const {
  Box place = box;
  place[0] = {sample, sample + 1};
  return random_field(place, whole_, options_.seed, [](double u) { return 2 * u - 1; })[0];
}

SyntheticImages::SyntheticImages(const SyntheticOptions& options)
    : options_(options), noise_(options) {}

at::Tensor SyntheticImages::read(int64_t sample, const Box& box) const {
  constexpr double kTurn = 2 * std::numbers::pi;
  const double share = static_cast<double>(label(sample)) / static_cast<double>(options_.classes);
  const double angle = share * std::numbers::pi, length = 6 + 6 * share;
  const double phase =
      kTurn * uniform(combine_keys(options_.seed, kPhaseKey), static_cast<uint64_t>(sample));
  at::Tensor wave = at::full({1}, phase, at::kDouble);
  const int axes = box.axes();
  for (int axis = 2; axis < axes; ++axis) {
    const double along = axis == axes - 1 ? std::cos(angle) : std::sin(angle);
    const at::Tensor pixels = at::arange(box[axis].begin, box[axis].end, at::kDouble);
    wave = wave.unsqueeze(-1) + pixels * (kTurn / length * along);
  }
  at::Tensor image = noise_.read(sample, box).mul_(0.5);
  for (int64_t i = 0; i < box[1].length(); ++i) {
    const double tint = std::cos(kTurn * share + static_cast<double>(box[1].begin + i));
    image[i].add_(wave[0].sin() * 0.5 + 0.3 * tint);
  }
  return image;
}

}  // namespace mpi4dl
