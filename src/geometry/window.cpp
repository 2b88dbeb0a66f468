#include "geometry/window.hpp"

namespace mpi4dl {

int64_t Window::outputs(int64_t length, bool ceil_mode) const {
  const int64_t room = length + 2 * padding - span();
  if (room < 0) return 0;
  const int64_t floored = room / stride + 1;
  if (!ceil_mode || room % stride == 0) return floored;
  return floored * stride < length + padding ? floored + 1 : floored;
}

Interval Window::need(const Interval& outputs) const {
  if (outputs.empty()) return {};
  return {outputs.begin * stride - padding, (outputs.end - 1) * stride - padding + span()};
}

}  // namespace mpi4dl
