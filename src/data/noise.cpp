#include "data/noise.hpp"

#include <ATen/ATen.h>

#include "base/random.hpp"
#include "exchange/patch.hpp"
#include "exchange/random_field.hpp"

namespace mpi4dl {
namespace {

constexpr uint64_t kLabelKey = 0x6c6162656cULL;

}  // namespace

at::Tensor noise_pixels(const Box& box, std::span<const int64_t> whole, uint64_t seed,
                        c10::ScalarType type) {
  return random_field(box, whole, seed, [](double u) { return 2 * u - 1; })
      .to(type)
      .contiguous(memory_format(box));
}

int64_t noise_label(int64_t image, int64_t classes, uint64_t seed) {
  const double drawn = uniform(combine_keys(seed, kLabelKey), static_cast<uint64_t>(image));
  return static_cast<int64_t>(drawn * static_cast<double>(classes));
}

at::Tensor noise_labels(const Interval& images, int64_t classes, uint64_t seed) {
  at::Tensor labels = at::empty({images.length()}, at::kLong);
  for (int64_t i = 0; i < images.length(); ++i)
    labels.data_ptr<int64_t>()[i] = noise_label(images.begin + i, classes, seed);
  return labels;
}

}  // namespace mpi4dl
