#include "graph/parameter.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace mpi4dl {
namespace {

/// Checkpoints of version 1 have the last two.
constexpr std::array<std::string_view, 6> kOtherTensors{
    "carried/", "exp_avg/", "exp_avg_sq/", "momentum_buffer/", "momentum/", "variation/"};

}  // namespace

bool is_parameter_name(const std::string& name) {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::ranges::none_of(kOtherTensors, begins) && !name.ends_with(".num_batches_tracked");
}

std::vector<Parameter> weight_and_bias(const std::vector<int64_t>& shape, int64_t fan_in, bool bias,
                                       int64_t outputs) {
  std::vector<Parameter> result{
      {.name = "weight", .shape = shape, .init = Init::uniform_fan_in, .fan_in = fan_in}};
  if (bias)
    result.push_back(
        {.name = "bias", .shape = {outputs}, .init = Init::uniform_fan_in, .fan_in = fan_in});
  return result;
}

std::vector<Parameter> scale_and_shift(int64_t channels) {
  return {{.name = "weight", .shape = {channels}, .init = Init::ones},
          {.name = "bias", .shape = {channels}, .init = Init::zeros}};
}

std::vector<int64_t> weight_shape(int64_t first, int64_t second, const Extents& kernel) {
  std::vector<int64_t> shape{first, second};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return shape;
}

}  // namespace mpi4dl
