#include "ops/kernels/convolution.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include "base/processor.hpp"
#include "ops/kernels/matrix_unit.hpp"
#include "ops/kernels/memory_order.hpp"
#include "ops/kernels/tap_products.hpp"
#include "ops/kernels/weight_sums.hpp"

namespace mpi4dl {
namespace {

bool narrow(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16;
}

/// With one more zero along the axis where its length is odd.
at::Tensor even(const at::Tensor& tensor, int64_t axis) {
  if (tensor.size(axis) % 2 == 0) return tensor;
  std::vector<int64_t> shape = tensor.sizes().vec();
  ++shape[axis];
  at::Tensor longer = empty_image(shape, tensor.scalar_type()).zero_();
  longer.narrow(axis, 0, tensor.size(axis)).copy_(tensor);
  return longer;
}

/// Computes `product` in bfloat16.
void write_by_matrix_unit(TapProduct& product, const at::Tensor& result) {
  product.x = even(product.x, 1);
  product.weight = even(product.weight, product.back ? 0 : 1);
  product.y = result;
  multiply_taps<c10::BFloat16>(product);
}

/// Computes `product` in float32.
void write_widened(TapProduct& product, const at::Tensor& result) {
  product.weight = product.weight.to(at::kFloat);
  if (product.bias.defined()) product.bias = product.bias.to(at::kFloat);
  product.y = result;
  multiply_taps<float, c10::BFloat16>(product);
}

void write(TapProduct& product, const at::Tensor& result) {
  if (narrow(result))
    return has_matrix_unit() ? write_by_matrix_unit(product, result)
                             : write_widened(product, result);
  product.y = result;
  if (result.scalar_type() == at::kDouble) return multiply_taps<double>(product);
  multiply_taps<float>(product);
}

}  // namespace

bool has_convolution_kernel(const at::Tensor& input, const at::Tensor& weight, int64_t groups) {
  const auto type = input.scalar_type();
  return input.is_cpu() && input.dim() == 4 && groups == 1 && weight.scalar_type() == type &&
         channels_side_by_side(input) &&
         (type == at::kFloat || type == at::kDouble ||
          (type == at::kBFloat16 && (has_matrix_unit() || !has_bfloat16_instructions())));
}

void convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
              const ImageWindows& windows, const at::Tensor& addend, const at::Tensor& y) {
  RECORD_USER_SCOPE("mpi4dl::convolve");
  TapProduct product{.x = x,
                     .weight = weight,
                     .bias = bias,
                     .addend = addend.defined() ? with_channels_side_by_side(addend) : addend,
                     .y = {},
                     .rows = output_runs(windows[0], x.size(2), y.size(2)),
                     .columns = output_runs(windows[1], x.size(3), y.size(3))};
  write(product, y);
}

void convolve_back(const at::Tensor& dy, const at::Tensor& weight, const ImageWindows& windows,
                   const at::Tensor& dx) {
  RECORD_USER_SCOPE("mpi4dl::convolve_back");
  TapProduct product{.x = dy,
                     .weight = weight,
                     .back = true,
                     .bias = {},
                     .addend = {},
                     .y = {},
                     .rows = input_runs(windows[0], dx.size(2), dy.size(2)),
                     .columns = input_runs(windows[1], dx.size(3), dy.size(3))};
  write(product, dx);
}

void add_weight_gradient(const at::Tensor& x, const at::Tensor& dy, const ImageWindows& windows,
                         const at::Tensor& sums) {
  RECORD_USER_SCOPE("mpi4dl::weight_gradient");
  if (x.scalar_type() == at::kDouble) return sum_weight_gradient<double>(x, dy, windows, sums);
  if (!narrow(x)) return sum_weight_gradient<float>(x, dy, windows, sums);
  if (has_matrix_unit()) return sum_weight_gradient<c10::BFloat16>(x, dy, windows, sums);
  sum_weight_gradient<float, c10::BFloat16>(x, dy, windows, sums);
}

}  // namespace mpi4dl
