#include "geometry/window.hpp"

namespace mpi4dl {

int64_t Window::outputs(int64_t length, bool ceil_mode) const {
  const int64_t space = length + padding + padding_end() - span();
  const int64_t inside = space < 0 ? 0 : space / stride + 1;
  const bool left_over = space < 0 || space % stride != 0;
  if (!ceil_mode || !left_over || space + stride <= 0) return inside;
  return inside * stride < length + padding ? inside + 1 : inside;
}

Interval Window::need(const Interval& outputs) const {
  if (outputs.empty()) return {};
  return {outputs.begin * stride - padding, (outputs.end - 1) * stride - padding + span()};
}

}  // namespace mpi4dl
