#include <ATen/ATen.h>

#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const Add& /*op*/, const TileRun& run) {
  at::Tensor sum = run.target;
  if (sum.defined()) {
    at::add_out(sum, run.inputs[0].data, run.inputs[1].data);
  } else {
    sum = run.inputs[0].data + run.inputs[1].data;
  }
  for (size_t i = 2; i < run.inputs.size(); ++i) sum.add_(run.inputs[i].data);
  return with_backward(sum, [count = run.inputs.size()](const at::Tensor& gradient) {
    return Gradients{std::vector<at::Tensor>(count, gradient), {}};
  });
}

}  // namespace mpi4dl
