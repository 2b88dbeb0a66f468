#include "execute/moments.hpp"

#include <ATen/ATen.h>

#include "backend/precision.hpp"
#include "comm/collectives.hpp"

namespace mpi4dl {
namespace {

at::Tensor own_moments(const at::Tensor& samples, int64_t rows) {
  at::Tensor moments = at::zeros({rows, 3}, samples.options().dtype(at::kDouble));
  if (samples.numel() == 0) return moments;
  const int64_t count = samples.size(1);
  const auto [variance, mean] = at::var_mean(samples, std::vector<int64_t>{1}, /*unbiased=*/false);
  moments.select(1, 0).fill_(static_cast<double>(count));
  moments.select(1, 1).copy_(mean);
  moments.select(1, 2).copy_(variance.to(at::kDouble).mul_(static_cast<double>(count)));
  return moments;
}

}  // namespace

Statistics merged_statistics(const at::Tensor& samples, int64_t rows, const Communicator* ranks) {
  at::Tensor moments = own_moments(samples.to(wide_type(samples.scalar_type())), rows);
  if (ranks != nullptr) all_reduce_moments(moments, *ranks);
  const at::Tensor count = moments.select(1, 0);
  return {count, moments.select(1, 1), moments.select(1, 2) / count};
}

}  // namespace mpi4dl
