#include "graph/geometry.hpp"

#include <algorithm>
#include <type_traits>

namespace mpi4dl {
namespace {

template <typename Op, typename... Others>
constexpr bool is_any_of = (std::is_same_v<Op, Others> || ...);

template <typename Op>
concept Windowed = is_any_of<Op, Convolution, MaxPool, AvgPool>;

template <typename Op>
concept Pointwise = is_any_of<Op, BatchNorm, GroupNorm, Relu, Add, Concat, Dropout, Identity>;

int64_t at(const Extents& values, int axis, int64_t otherwise) {
  return values.empty() ? otherwise : values[axis];
}

Window window(const Convolution& op, int axis) {
  return {.kernel = op.kernel[axis],
          .stride = at(op.stride, axis, 1),
          .padding = at(op.padding, axis, 0),
          .dilation = at(op.dilation, axis, 1)};
}

Window window(const MaxPool& op, int axis) {
  return {.kernel = op.kernel[axis],
          .stride = at(op.stride, axis, op.kernel[axis]),
          .padding = at(op.padding, axis, 0),
          .dilation = at(op.dilation, axis, 1)};
}

Window window(const AvgPool& op, int axis) {
  return {.kernel = op.kernel[axis],
          .stride = at(op.stride, axis, op.kernel[axis]),
          .padding = at(op.padding, axis, 0)};
}

// Division that rounds down and up for negative numerators too; the divisor is positive.
int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
int64_t ceil_divide(int64_t a, int64_t b) {
  return -floor_divide(-a, b);
}

template <Windowed Op>
Interval needed(const Op& op, int axis, const Interval& outputs, int64_t /*length*/) {
  return window(op, axis).need(outputs);
}

/// Input i writes outputs i*stride - padding + {0, ..., kernel-1} * dilation.
Interval needed(const TransposedConvolution& op, int axis, const Interval& outputs,
                int64_t length) {
  const int64_t stride = at(op.stride, axis, 1);
  const int64_t padding = at(op.padding, axis, 0);
  const int64_t reach = at(op.dilation, axis, 1) * (op.kernel[axis] - 1);
  const Interval inputs{ceil_divide(outputs.begin + padding - reach, stride),
                        floor_divide(outputs.end - 1 + padding, stride) + 1};
  return intersect(inputs, {0, length});
}

/// Bilinear: output o lies at (o + 1/2) / factor - 1/2, between two inputs.
Interval needed(const Upsample& op, int /*axis*/, const Interval& outputs, int64_t length) {
  const int64_t last = outputs.end - 1;
  if (op.mode == Interpolation::nearest) return {outputs.begin / op.factor, last / op.factor + 1};
  const auto input_below = [&](int64_t output) {
    return floor_divide(2 * output + 1 - op.factor, 2 * op.factor);
  };
  return {std::max<int64_t>(input_below(outputs.begin), 0),
          std::min(input_below(last) + 2, length)};
}

template <Pointwise Op>
Interval needed(const Op&, int /*axis*/, const Interval& outputs, int64_t /*length*/) {
  return outputs;
}

/// Flatten, global pooling and what follows them read everything.
template <typename Op>
Interval needed(const Op&, int /*axis*/, const Interval& /*outputs*/, int64_t length) {
  return {0, length};
}

}  // namespace

std::vector<Window> windows(const Operator& op, int spatial_axes) {
  return std::visit(
      [spatial_axes]<typename Op>(const Op& alternative) {
        std::vector<Window> result;
        if constexpr (Windowed<Op>)
          for (int axis = 0; axis < spatial_axes; ++axis)
            result.push_back(window(alternative, axis));
        return result;
      },
      op);
}

Interval needed_rows(const Operator& op, int axis, int /*spatial_axes*/, const Interval& outputs,
                     int64_t length) {
  if (outputs.empty()) return {};
  return std::visit(
      [&](const auto& alternative) { return needed(alternative, axis, outputs, length); }, op);
}

bool pointwise(const Operator& op) {
  return std::visit([]<typename Op>(const Op&) { return Pointwise<Op>; }, op);
}

}  // namespace mpi4dl
