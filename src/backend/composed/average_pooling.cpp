#include <ATen/ATen.h>

#include "backend/composed/composed_backend.hpp"
#include "backend/precision.hpp"

namespace mpi4dl {
namespace {

/// Returns by how much each output's sum is divided along one axis.
at::Tensor divisors(const PoolingTile::Axis& axis, bool include_pad,
                    const at::TensorOptions& options) {
  const Window& window = axis.window;
  const at::Tensor begin =
      at::arange(axis.outputs.begin, axis.outputs.end, options) * window.stride - window.padding;
  const at::Tensor end = (begin + window.kernel).clamp_max(axis.length + window.padding_end());
  return include_pad ? end - begin : end.clamp_max(axis.length) - begin.clamp_min(0);
}

/// Computes the pooling as libtorch takes it: a sum over windows of an input with zeros around it.
struct Sum {
  static constexpr int64_t kDivisor = 1;
  std::vector<int64_t> kernel, stride, no_padding, frame;
  at::Tensor divisor;  // of each output, to broadcast

  Sum(const PoolingTile& tile, const at::TensorOptions& options) {
    const size_t axes = tile.axes.size();
    no_padding.resize(axes, 0);
    frame.resize(2 * axes, 0);
    for (size_t i = 0; i < axes; ++i) {
      const PoolingTile::Axis& axis = tile.axes[i];
      kernel.push_back(axis.window.kernel);
      stride.push_back(axis.window.stride);
      const Interval need = axis.window.need(axis.outputs);
      frame[2 * (axes - 1 - i)] = axis.inputs.begin - need.begin;
      frame[2 * (axes - 1 - i) + 1] = need.end - axis.inputs.end;
      std::vector<int64_t> shape(axes, 1);
      shape[i] = -1;
      const at::Tensor along = divisors(axis, tile.count_include_pad, options).view(shape);
      divisor = divisor.defined() ? divisor * along : along;
    }
  }
  bool volume() const { return kernel.size() == 3; }
};

}  // namespace

at::Tensor ComposedBackend::average_pool(const PoolingTile& tile, const at::Tensor& x) const {
  const Sum sum(tile, options(at::kDouble));
  const at::Tensor padded = at::constant_pad_nd(x, sum.frame, 0);
  const at::Tensor sums = sum.volume() ? at::avg_pool3d(padded, sum.kernel, sum.stride,
                                                        sum.no_padding, false, true, Sum::kDivisor)
                                       : at::avg_pool2d(padded, sum.kernel, sum.stride,
                                                        sum.no_padding, false, true, Sum::kDivisor);
  return sums.div(sum.divisor.to(x.scalar_type()));
}

at::Tensor ComposedBackend::average_pool_backward(const PoolingTile& tile, const at::Tensor& dy,
                                                  at::IntArrayRef shape) const {
  const Sum sum(tile, options(at::kDouble));
  std::vector<int64_t> framed = shape.vec(), cut = sum.frame;
  for (size_t i = 0; i < cut.size(); ++i) {
    framed[framed.size() - 1 - i / 2] += cut[i];
    cut[i] = -cut[i];
  }
  const at::Tensor share = dy.div(sum.divisor.to(dy.scalar_type()));
  // Only its shape is read.
  const at::Tensor like = at::empty(framed, dy.options().memory_format(dy.suggest_memory_format()));
  const at::Tensor dx = sum.volume()
                            ? at::avg_pool3d_backward(share, like, sum.kernel, sum.stride,
                                                      sum.no_padding, false, true, Sum::kDivisor)
                            : at::avg_pool2d_backward(share, like, sum.kernel, sum.stride,
                                                      sum.no_padding, false, true, Sum::kDivisor);
  return at::constant_pad_nd(dx, cut, 0);
}

}  // namespace mpi4dl
