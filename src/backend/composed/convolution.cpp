#include <ATen/ATen.h>

#include "backend/composed/composed_backend.hpp"

namespace mpi4dl {
namespace {

/// Holds a convolution as libtorch takes it: what it cannot pad by itself is around the input
/// before.
struct Arguments {
  std::vector<int64_t> stride, dilation, padding, no_output_padding;
  std::vector<int64_t> frame;  // from the last axis to the first: before and after; negative: cut
  bool framed = false;

  /// `space` has the input's rows, columns ...
  Arguments(const ConvolutionTile& tile, at::IntArrayRef space)
      : padding(tile.windows.size(), 0), no_output_padding(tile.windows.size(), 0) {
    std::vector<int64_t> before, after;
    bool pads_itself = true;
    for (size_t axis = 0; axis < tile.windows.size(); ++axis) {
      const Window& window = tile.windows[axis];
      stride.push_back(window.stride);
      dilation.push_back(window.dilation);
      before.push_back(window.padding);
      const int64_t end = window.need({0, tile.outputs[axis]}).end;
      const int64_t length = space[static_cast<int64_t>(axis)];
      after.push_back(end - length);
      // As many zeros on both sides make the same outputs, if they are not enough for another one.
      const int64_t unread = before.back() - after.back();
      pads_itself =
          pads_itself && before.back() >= 0 && unread >= 0 && unread < window.stride && length > 0;
    }
    if (pads_itself) {
      padding = before;
      return;
    }
    framed = true;
    for (size_t axis = before.size(); axis-- > 0;)
      frame.insert(frame.end(), {before[axis], after[axis]});
  }
};

at::Tensor with_frame(const at::Tensor& x, const Arguments& arguments) {
  return arguments.framed ? at::constant_pad_nd(x, arguments.frame, 0) : x;
}

at::IntArrayRef space_of(at::IntArrayRef shape) {
  return shape.slice(2);
}

/// Returns one of the gradients of a convolution: of the input, which only has a shape here, or of
/// the weight.
at::Tensor gradient(const Arguments& arguments, const at::Tensor& dy, const at::Tensor& x,
                    const at::Tensor& weight, int64_t groups, std::array<bool, 3> which) {
  auto [input, of_weight, bias] = at::convolution_backward(
      dy, x, weight, at::OptionalIntArrayRef(), arguments.stride, arguments.padding,
      arguments.dilation, /*transposed=*/false, arguments.no_output_padding, groups, which);
  return which[0] ? input : of_weight;
}

}  // namespace

bool ComposedBackend::wants_padded_input(const at::Tensor& /*x*/, const at::Tensor& /*weight*/,
                                         int64_t /*groups*/) const {
  return true;
}

at::Tensor ComposedBackend::convolve(const ConvolutionTile& tile, const at::Tensor& x,
                                     const at::Tensor& weight, const at::Tensor& bias,
                                     const at::Tensor& residual, const at::Tensor& target) const {
  const Arguments arguments(tile, space_of(x.sizes()));
  at::Tensor y = at::convolution(with_frame(x, arguments), weight, bias, arguments.stride,
                                 arguments.padding, arguments.dilation, /*transposed=*/false,
                                 arguments.no_output_padding, tile.groups);
  if (residual.defined()) y.add_(residual);
  return target.defined() ? target.copy_(y) : y;
}

at::Tensor ComposedBackend::convolve_backward_data(const ConvolutionTile& tile,
                                                   const at::Tensor& dy, const at::Tensor& weight,
                                                   at::IntArrayRef shape) const {
  const Arguments arguments(tile, space_of(shape));
  std::vector<int64_t> framed = shape.vec(), cut = arguments.frame;
  for (size_t i = 0; i < cut.size(); ++i) {
    framed[framed.size() - 1 - i / 2] += cut[i];
    cut[i] = -cut[i];
  }
  const at::Tensor like = at::empty(framed, dy.options().memory_format(dy.suggest_memory_format()));
  const at::Tensor dx = gradient(arguments, dy, like, weight, tile.groups, {true, false, false});
  return arguments.framed ? at::constant_pad_nd(dx, cut, 0) : dx;
}

void ComposedBackend::accumulate_weight_gradient(const ConvolutionTile& tile, const at::Tensor& x,
                                                 const at::Tensor& dy,
                                                 const at::Tensor& sums) const {
  const Arguments arguments(tile, space_of(x.sizes()));
  const at::Tensor like = at::empty_strided(sums.sizes(), sums.strides(), dy.options());
  sums.add_(
      gradient(arguments, dy, with_frame(x, arguments), like, tile.groups, {false, true, false}));
}

}  // namespace mpi4dl
