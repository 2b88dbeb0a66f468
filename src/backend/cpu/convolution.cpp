#include "backend/cpu/convolution.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include "backend/channels_last.hpp"
#include "backend/cpu/depthwise.hpp"
#include "backend/cpu/microkernels.hpp"
#include "backend/cpu/tap_products.hpp"
#include "backend/cpu/tuning.hpp"
#include "backend/cpu/weight_gradient.hpp"
#include "base/expects.hpp"
#include "base/rounding.hpp"

namespace mpi4dl {
namespace {

/// Returns the tensor with zeros appended along the axis up to a multiple of `unit`.
at::Tensor padded(const at::Tensor& tensor, int64_t axis, int64_t unit) {
  if (tensor.size(axis) % unit == 0) return tensor;
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[axis] = round_up(shape[axis], unit);
  at::Tensor longer = empty_image(shape, tensor.scalar_type()).zero_();
  longer.narrow(axis, 0, tensor.size(axis)).copy_(tensor);
  return longer;
}

at::Tensor converted(const at::Tensor& tensor, c10::ScalarType type) {
  return !tensor.defined() || tensor.scalar_type() == type ? tensor : tensor.to(type);
}

/// Computes the product by the best microkernel.
void write(TapProduct product, InstructionSet set) {
  const int64_t channels = product.y.size(1);
  const Microkernel& kernel =
      choose_microkernel(product.y.scalar_type(), set, channels, product.weight.numel() / channels);
  product.x = padded(product.x, 1, kernel.k_unit);
  product.weight = converted(padded(product.weight, product.backward_data ? 0 : 1, kernel.k_unit),
                             kernel.operand);
  product.bias = converted(product.bias, kernel.operand);
  multiply_taps(product, kernel);
}

bool is_depthwise(int64_t in, int64_t out, int64_t groups) {
  return groups > 1 && in == groups && out == groups;
}

/// Returns the channels of one group, or an undefined tensor where there is none.
at::Tensor group_of(const at::Tensor& tensor, int64_t axis, int64_t group, int64_t groups) {
  if (!tensor.defined() || groups == 1) return tensor;
  const int64_t length = tensor.size(axis) / groups;
  return tensor.narrow(axis, group * length, length);
}

}  // namespace

bool has_convolution_kernel(const at::Tensor& x, const at::Tensor& other, int64_t out,
                            int64_t groups, InstructionSet set) {
  const auto type = x.scalar_type();
  const int64_t in = x.dim() == 4 ? x.size(1) : 0;
  const bool wide_groups = groups == 1 || is_depthwise(in, out, groups) ||
                           std::min(in, out) >= kTuning.group_channels * groups;
  return x.dim() == 4 && wide_groups && other.scalar_type() == type && is_channels_last(x) &&
         (type == at::kFloat || type == at::kDouble ||
          (type == at::kBFloat16 && (set == InstructionSet::amx || !has_avx512_bf16(set))));
}

void convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
              const ImageWindows& windows, const at::Tensor& residual, const at::Tensor& y,
              InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::convolve");
  const int64_t groups = x.size(1) / weight.size(1);
  const at::Tensor more = residual.defined() ? to_channels_last(residual) : residual;
  const auto rows = output_runs(windows[0], x.size(2), y.size(2));
  const auto columns = output_runs(windows[1], x.size(3), y.size(3));
  if (is_depthwise(x.size(1), y.size(1), groups))
    return multiply_depthwise({.x = x,
                               .weight = weight,
                               .bias = bias,
                               .residual = more,
                               .y = y,
                               .rows = rows,
                               .columns = columns},
                              set);
  for (int64_t group = 0; group < groups; ++group)
    write({.x = group_of(x, 1, group, groups),
           .weight = group_of(weight, 0, group, groups),
           .bias = group_of(bias, 0, group, groups),
           .residual = group_of(more, 1, group, groups),
           .y = group_of(y, 1, group, groups),
           .rows = rows,
           .columns = columns},
          set);
}

void convolve_backward_data(const at::Tensor& dy, const at::Tensor& weight,
                            const ImageWindows& windows, const at::Tensor& dx, InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::convolve_backward_data");
  const int64_t groups = dx.size(1) / weight.size(1);
  const auto rows = input_runs(windows[0], dx.size(2), dy.size(2));
  const auto columns = input_runs(windows[1], dx.size(3), dy.size(3));
  if (is_depthwise(dx.size(1), dy.size(1), groups))
    return multiply_depthwise({.x = dy,
                               .weight = weight,
                               .bias = {},
                               .residual = {},
                               .y = dx,
                               .rows = rows,
                               .columns = columns},
                              set);
  for (int64_t group = 0; group < groups; ++group)
    write({.x = group_of(dy, 1, group, groups),
           .weight = group_of(weight, 0, group, groups),
           .backward_data = true,
           .bias = {},
           .residual = {},
           .y = group_of(dx, 1, group, groups),
           .rows = rows,
           .columns = columns},
          set);
}

void accumulate_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                const ImageWindows& windows, const at::Tensor& sums,
                                InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::accumulate_weight_gradient");
  expects(x.scalar_type() == dy.scalar_type() && x.size(0) == dy.size(0),
          "x and dy are of the same images");
  const int64_t groups = x.size(1) / sums.size(1);
  expects(sums.size(0) == dy.size(1) && x.size(1) == groups * sums.size(1) &&
              dy.size(1) % groups == 0 && sums.size(2) == windows[0].kernel &&
              sums.size(3) == windows[1].kernel,
          "sums have the shape of the weight");
  if (is_depthwise(x.size(1), dy.size(1), groups))
    return accumulate_depthwise_weight_gradient(x, dy, windows, sums, set);
  const WeightGradientKernel& kernel = choose_weight_gradient_kernel(x.scalar_type(), set);
  for (int64_t group = 0; group < groups; ++group)
    kernel.accumulate(group_of(x, 1, group, groups), group_of(dy, 1, group, groups), windows,
                      group_of(sums, 0, group, groups), set);
}

}  // namespace mpi4dl
