#include <ATen/ATen.h>

#include "backend/random_field.hpp"
#include "base/random.hpp"
#include "execute/channels.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

/// Returns 0 for what is dropped and 1/(1-p) for what is kept, keyed by step, layer and global
/// position, so every layout drops the same. It broadcasts over what is dropped together.
at::Tensor dropout_mask(const Dropout& op, const TileRun& run) {
  const Shape& shape = run.node().shape;
  std::vector<int64_t> whole{0, shape.channels};
  whole.insert(whole.end(), shape.space.begin(), shape.space.end());
  whole.resize(op.mask_axes(run.output.axes()));
  const uint64_t key = combine_keys(run.context.dropout_seed, static_cast<uint64_t>(run.id));
  const std::vector<int64_t>& images = run.context.images;
  std::vector<at::Tensor> masks;
  for (int64_t image = run.output[0].begin; image < run.output[0].end; ++image) {
    Box box = Box::whole(whole);
    for (int axis = 1; axis < box.axes(); ++axis) box[axis] = run.output[axis];
    const int64_t place = images.empty() ? image : images[image];
    box[0] = {place, place + 1};
    masks.push_back(random_field(
        box, whole, key, [p = op.probability](double u) { return u < p ? 0 : 1 / (1 - p); }));
  }
  return at_every_pixel(at::cat(masks), run.output.axes());
}

}  // namespace

template <>
TileResult run_tile(const Dropout& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  if (!run.context.training || op.probability == 0)
    return with_backward(input.data,
                         [](const at::Tensor& gradient) { return Gradients{{gradient}, {}}; });
  // It is made on the host, whose random numbers are the same for every device.
  const at::Tensor mask =
      run.backend().from_host(dropout_mask(op, run).to(input.data.scalar_type()));
  return with_backward(input.data * mask, [mask](const at::Tensor& gradient) {
    return Gradients{{gradient * mask}, {}};
  });
}

}  // namespace mpi4dl
