#include "ops/kernels/convolution.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include "ops/kernels/memory_order.hpp"
#include "ops/kernels/tap_products.hpp"
#include "ops/kernels/weight_sums.hpp"

namespace mpi4dl {
namespace {

template <typename Work>
auto by_wide_type(const at::Tensor& tensor, Work&& work) {
  return tensor.scalar_type() == at::kDouble ? work(double{}) : work(float{});
}

/// Some processors multiply bfloat16 twice as fast as float32, and oneDNN knows how.
bool has_bfloat16_instructions() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

bool narrow(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16;
}

at::Tensor widened(const at::Tensor& tensor) {
  return tensor.defined() && narrow(tensor) ? tensor.to(at::kFloat) : tensor;
}

/// In a type that the kernels compute with, and then to where it belongs.
void write(TapProduct& product, const at::Tensor& result) {
  product.y = result;
  if (narrow(result))
    product.y =
        at::empty(result.sizes(),
                  result.options().dtype(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast));
  by_wide_type(product.x, [&]<typename T>(T) { multiply_taps<T>(product); });
  if (narrow(result)) result.copy_(product.y);
}

}  // namespace

bool has_convolution_kernel(const at::Tensor& input, const at::Tensor& weight, int64_t groups) {
  const auto type = input.scalar_type();
  return input.is_cpu() && input.dim() == 4 && groups == 1 && weight.scalar_type() == type &&
         channels_side_by_side(input) &&
         (type == at::kFloat || type == at::kDouble ||
          (type == at::kBFloat16 && !has_bfloat16_instructions()));
}

void convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
              const ImageWindows& windows, const at::Tensor& addend, const at::Tensor& y) {
  RECORD_USER_SCOPE("mpi4dl::convolve");
  TapProduct product{
      .x = widened(x),
      .weight = widened(weight),
      .bias = widened(bias),
      .addend = addend.defined() ? widened(with_channels_side_by_side(addend)) : addend,
      .y = {},
      .rows = output_runs(windows[0], x.size(2), y.size(2)),
      .columns = output_runs(windows[1], x.size(3), y.size(3))};
  write(product, y);
}

void convolve_back(const at::Tensor& dy, const at::Tensor& weight, const ImageWindows& windows,
                   const at::Tensor& dx) {
  RECORD_USER_SCOPE("mpi4dl::convolve_back");
  TapProduct product{.x = widened(dy),
                     .weight = widened(weight),
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
  by_wide_type(
      sums, [&]<typename T>(T) { sum_weight_gradient<T>(widened(x), widened(dy), windows, sums); });
}

}  // namespace mpi4dl
