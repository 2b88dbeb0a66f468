#include "graph/resampling.hpp"

#include <algorithm>
#include <cmath>

namespace mpi4dl {
namespace {

/// Returns the distance between outputs, in inputs.
template <typename T>
T step(const Resampling& axis) {
  if (axis.align_corners)
    return axis.outputs > 1 ? static_cast<T>(axis.inputs - 1) / static_cast<T>(axis.outputs - 1)
                            : T{0};
  if (axis.factor > 0) return static_cast<T>(1 / axis.factor);
  return static_cast<T>(axis.inputs) / static_cast<T>(axis.outputs);
}

int64_t nearest_input(const Resampling& axis, int64_t output) {
  const bool exact = axis.mode == Interpolation::nearest_exact;
  if (!exact && axis.outputs == axis.inputs) return output;
  if (!exact && axis.outputs == 2 * axis.inputs) return output / 2;
  const auto place = static_cast<float>(output);
  const float position = (exact ? place + 0.5F : place) * step<float>(axis);
  return std::min(static_cast<int64_t>(std::floor(position)), axis.inputs - 1);
}

/// Between is a place between two inputs.
template <typename T>
struct Between {
  int64_t below;
  T share;  ///< of the input above
};

template <typename T>
Between<T> between(const Resampling& axis, int64_t output) {
  const auto place = static_cast<T>(output);
  T position =
      axis.align_corners ? step<T>(axis) * place : step<T>(axis) * (place + T{0.5}) - T{0.5};
  if (axis.mode == Interpolation::bilinear) position = std::max(position, T{0});
  // PyTorch rounds down in float32, also what it has in float64.
  const auto floor = static_cast<int64_t>(std::floor(static_cast<float>(position)));
  const int64_t below = std::min(floor, axis.inputs - 1);
  return {below, std::clamp(position - static_cast<T>(below), T{0}, T{1})};
}

template <typename T>
Resampling::Mixture bilinear(const Resampling& axis, int64_t output) {
  const auto [below, share] = between<T>(axis, output);
  return {{below, std::min(below + 1, axis.inputs - 1)}, {T{1} - share, share}};
}

/// Returns the weights of Keys' cubic convolution for the four inputs around a place.
template <typename T>
std::array<double, 4> cubic_weights(T share) {
  constexpr auto a = T{-0.75};
  const auto near = [](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const T rest = T{1} - share;
  return {far(share + 1), near(share), near(rest), far(rest + 1)};
}

template <typename T>
Resampling::Mixture bicubic(const Resampling& axis, int64_t output) {
  const auto [below, share] = between<T>(axis, output);
  Resampling::Mixture mixture{{}, cubic_weights(share)};
  for (int tap = 0; tap < 4; ++tap)
    mixture.inputs[tap] = std::clamp<int64_t>(below - 1 + tap, 0, axis.inputs - 1);
  return mixture;
}

template <typename T>
Resampling::Mixture mixture_in(const Resampling& axis, int64_t output) {
  if (axis.mode == Interpolation::bicubic) return bicubic<T>(axis, output);
  if (axis.mode == Interpolation::bilinear) return bilinear<T>(axis, output);
  return {{nearest_input(axis, output)}, {1}};
}

}  // namespace

int Resampling::taps() const {
  if (mode == Interpolation::bicubic) return 4;
  return mode == Interpolation::bilinear ? 2 : 1;
}

bool Resampling::is_copy() const {
  return inputs == outputs && (mode == Interpolation::nearest || mode == Interpolation::bilinear);
}

Resampling::Mixture Resampling::mixture(int64_t output, Precision precision) const {
  if (is_copy()) return {{output, output}, {1}};
  return precision == Precision::twofold ? mixture_in<double>(*this, output)
                                         : mixture_in<float>(*this, output);
}

/// Positions grow with outputs, however they are rounded.
Interval Resampling::need(const Interval& range) const {
  Interval rows;
  for (const Precision precision : {Precision::single, Precision::twofold})
    rows = hull(rows, {mixture(range.begin, precision).inputs[0],
                       mixture(range.end - 1, precision).inputs[taps() - 1] + 1});
  return rows;
}

}  // namespace mpi4dl
