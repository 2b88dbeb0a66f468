#include <ATen/ATen.h>

#include <utility>

#include "execute/channels.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

at::Tensor& write(ElementwiseFunction function, const at::Tensor& a, const at::Tensor& b,
                  at::Tensor& y) {
  using enum ElementwiseFunction;
  switch (function) {
    case add:
      return at::add_out(y, a, b);
    case multiply:
      return at::mul_out(y, a, b);
    case subtract:
      return at::sub_out(y, a, b);
    case maximum:
      return at::maximum_out(y, a, b);
    case minimum:
      return at::minimum_out(y, a, b);
    case divide:
      break;
  }
  return at::div_out(y, a, b);
}

/// Returns the gradient where `wins` is positive, and half of it where it is zero: there both
/// operands are the largest.
at::Tensor share(const at::Tensor& gradient, const at::Tensor& wins) {
  return wins.sgn_().add_(1).mul_(0.5).mul_(gradient);
}

/// Returns the gradients of both operands at every element of the result.
std::pair<at::Tensor, at::Tensor> differentiate(ElementwiseFunction function, const at::Tensor& dy,
                                                const at::Tensor& a, const at::Tensor& b) {
  using enum ElementwiseFunction;
  switch (function) {
    case add:
      return {dy, dy};
    case multiply:
      return {dy * b, dy * a};
    case subtract:
      return {dy, -dy};
    case maximum:
      return {share(dy, a - b), share(dy, b - a)};
    case minimum:
      return {share(dy, b - a), share(dy, a - b)};
    case divide:
      break;
  }
  return {dy / b, -dy * (a / b / b)};
}

/// Describes an operand beside what it is combined with: over which axes of the result it is
/// spread, so that its gradient is a sum over them.
struct Operand {
  at::Tensor data;
  bool vector, gate;

  Operand(const Patch& patch, const Box& result, int64_t channels)
      : data(at_every_pixel(patch.data, result.axes())),
        vector(patch.box.axes() < result.axes()),
        gate(patch.data.size(1) < channels) {}

  /// Sums over all that this rank has computed, margins included; the adjoint of the broadcast adds
  /// what other tiles have for a vector.
  at::Tensor gradient(at::Tensor everywhere) const {
    if (gate) everywhere = everywhere.sum(1, /*keepdim=*/true);
    return vector ? sum_over_pixels(everywhere) : everywhere;
  }
};

}  // namespace

template <>
TileResult run_tile(const Elementwise& op, const TileRun& run) {
  const int64_t channels = run.node().shape.channels;
  Operand a(run.inputs[0], run.output, channels), b(run.inputs[1], run.output, channels);
  at::Tensor output = run.target.defined()
                          ? run.target
                          : run.backend().empty(run.output, a.data.scalar_type()).data;
  write(op.function, a.data, b.data, output);
  if (!op.keeps_inputs()) a.data = b.data = at::Tensor();
  return with_backward(output, [function = op.function, a, b](const at::Tensor& gradient) {
    auto [of_a, of_b] = differentiate(function, gradient, a.data, b.data);
    return Gradients{{a.gradient(std::move(of_a)), b.gradient(std::move(of_b))}, {}};
  });
}

}  // namespace mpi4dl
