#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include "backend/precision.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

/// Returns the values of a half type in the wide one, for what libtorch has no kernels for on the
/// host.
at::Tensor wide(const at::Tensor& x) {
  return x.to(wide_type(x.scalar_type()));
}

/// Holds the factors of scale * x, or scale * alpha * (exp(input_scale * x) - 1) where that is
/// negative.
struct EluFactors {
  double alpha, scale = 1, input_scale = 1;
};

EluFactors elu_factors(const Pointwise& op) {
  using enum PointwiseFunction;
  if (op.function == selu)
    return {1.6732632423543772848170429916717, 1.0507009873554804934193349852946};
  if (op.function == celu) return {op.a, 1, 1 / op.a};
  return {op.a};
}

at::Tensor& write_elu(const Pointwise& op, const at::Tensor& x, at::Tensor& y) {
  const auto [alpha, scale, input_scale] = elu_factors(op);
  return at::elu_out(y, x, alpha, scale, input_scale);
}

/// As libtorch has it, the input scale of celu's gradient has the digits of float32.
at::Tensor elu_gradient(const Pointwise& op, const at::Tensor& dy, const at::Tensor& x) {
  auto [alpha, scale, input_scale] = elu_factors(op);
  if (op.function == PointwiseFunction::celu) input_scale = 1.0 / static_cast<float>(op.a);
  return at::elu_backward(dy, alpha, scale, input_scale, /*is_result=*/false, x);
}

/// Never takes the logarithm of what has lost its digits.
at::Tensor& write_log_sigmoid(const at::Tensor& x, at::Tensor& y) {
  return at::abs_out(y, x).neg_().exp_().log1p_().neg_().add_(x.clamp_max(0));
}

at::Tensor& write_mish(const at::Tensor& x, at::Tensor& y) {
  const at::Tensor values = wide(x);
  return values.is_same(x) ? at::mish_out(y, x) : y.copy_(at::mish(values));
}

at::Tensor& write_scaled(const Pointwise& op, const at::Tensor& x, at::Tensor& y) {
  at::mul_out(y, x, at::native::wrapped_scalar_tensor(op.a));
  return op.b == 0 ? y : y.add_(op.b);
}

at::Tensor& write(const Pointwise& op, const at::Tensor& x, at::Tensor& y) {
  using enum PointwiseFunction;
  switch (op.function) {
    case sigmoid:
      return at::sigmoid_out(y, x);
    case silu:
      return at::silu_out(y, x);
    case tanh:
      return at::tanh_out(y, x);
    case gelu:
      return at::gelu_out(y, x);
    case gelu_tanh:
      return at::gelu_out(y, x, "tanh");
    case hardsigmoid:
      return at::hardsigmoid_out(y, x);
    case hardswish:
      return at::hardswish_out(y, x);
    case hardtanh:
    case clamp:
      return at::clamp_out(y, x, op.a, op.b);
    case leaky_relu:
      return at::leaky_relu_out(y, x, op.a);
    case elu:
    case selu:
    case celu:
      return write_elu(op, x, y);
    case softplus:
      return at::softplus_out(y, x, op.a, op.b);
    case mish:
      return write_mish(x, y);
    case log_sigmoid:
      return write_log_sigmoid(x, y);
    case exp:
      return at::exp_out(y, x);
    case abs:
      return at::abs_out(y, x);
    case scale:
      return write_scaled(op, x, y);
    case pow:
      break;
  }
  return at::pow_out(y, x, op.a);
}

at::Tensor pow_gradient(double exponent, const at::Tensor& dy, const at::Tensor& x) {
  if (exponent == 0) return at::zeros_like(dy);
  return x.pow(exponent - 1).mul_(exponent).mul_(dy);
}

/// Returns the gradient of the input, from what was kept: the input or the output.
at::Tensor differentiate(const Pointwise& op, const at::Tensor& dy, const at::Tensor& kept) {
  using enum PointwiseFunction;
  switch (op.function) {
    case sigmoid:
      return at::sigmoid_backward(dy, kept);
    case silu:
      return at::silu_backward(dy, kept);
    case tanh:
      return at::tanh_backward(dy, kept);
    case gelu:
      return at::gelu_backward(dy, kept);
    case gelu_tanh:
      return at::gelu_backward(dy, kept, "tanh");
    case hardsigmoid:
      return at::hardsigmoid_backward(dy, kept);
    case hardswish:
      return at::hardswish_backward(dy, kept);
    case hardtanh:
      return at::hardtanh_backward(wide(dy), wide(kept), op.a, op.b).to(dy.scalar_type());
    case clamp:
      return (kept >= op.a).logical_and_(kept <= op.b).mul(dy);
    case leaky_relu:
      return at::leaky_relu_backward(dy, kept, op.a, /*self_is_result=*/false);
    case elu:
    case selu:
    case celu:
      return elu_gradient(op, dy, kept);
    case softplus:
      return at::softplus_backward(dy, kept, op.a, op.b);
    case mish:
      return at::mish_backward(wide(dy), wide(kept)).to(dy.scalar_type());
    case log_sigmoid:
      return kept.neg().sigmoid_().mul_(dy);
    case exp:
      return dy * kept;
    case abs:
      return kept.sgn().mul_(dy);
    case scale:
      return dy * op.a;
    case pow:
      break;
  }
  return pow_gradient(op.a, dy, kept);
}

/// Says what backward reads of a forward.
at::Tensor kept_of(Pointwise::Keeps keeps, const at::Tensor& input, const at::Tensor& output) {
  if (keeps == Pointwise::Keeps::nothing) return {};
  return keeps == Pointwise::Keeps::input ? input : output;
}

}  // namespace

template <>
TileResult run_tile(const Pointwise& op, const TileRun& run) {
  const at::Tensor& input = run.inputs[0].data;
  at::Tensor output =
      run.target.defined() ? run.target : run.backend().empty(run.output, input.scalar_type()).data;
  write(op, input, output);
  return with_backward(
      output, [op, kept = kept_of(op.backward().keeps, input, output)](const at::Tensor& gradient) {
        return Gradients{{differentiate(op, gradient, kept)}, {}};
      });
}

}  // namespace mpi4dl
