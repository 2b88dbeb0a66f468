#include "backend/random_field.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/random.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kGrain = 16384;  // elements worth a thread

/// Returns, for each element of a box, its position in the whole tensor.
at::Tensor positions(const Box& box, std::span<const int64_t> whole) {
  at::Tensor index = at::arange(box[0].begin, box[0].end, at::kLong);
  for (int axis = 1; axis < box.axes(); ++axis)
    index =
        index.unsqueeze(-1) * whole[axis] + at::arange(box[axis].begin, box[axis].end, at::kLong);
  return index;
}

}  // namespace

at::Tensor random_field(const Box& box, std::span<const int64_t> whole, uint64_t key,
                        const std::function<double(double)>& map) {
  const at::Tensor index = positions(box, whole).contiguous();
  at::Tensor field = at::empty(index.sizes(), at::kDouble);
  const int64_t* place = index.data_ptr<int64_t>();
  double* value = field.data_ptr<double>();
  at::parallel_for(0, index.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      value[i] = map(uniform(key, static_cast<uint64_t>(place[i])));
  });
  return field;
}

}  // namespace mpi4dl
