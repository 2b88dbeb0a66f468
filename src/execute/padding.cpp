#include "execute/padding.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace mpi4dl {

bool Padding::none() const {
  const auto zero = [](int64_t width) { return width == 0; };
  return std::all_of(before.begin(), before.end(), zero) &&
         std::all_of(after.begin(), after.end(), zero);
}

Padding padding_around(const Box& patch, const Box& outputs, const std::vector<Window>& windows) {
  Padding padding;
  for (size_t axis = 0; axis < windows.size(); ++axis) {
    const Interval need = windows[axis].need(outputs[static_cast<int>(axis) + 2]);
    const Interval& have = patch[static_cast<int>(axis) + 2];
    // Outputs that see padding only: all of their input, whichever side of the image they are on.
    padding.before.push_back(have.empty() ? need.length() : have.begin - need.begin);
    padding.after.push_back(have.empty() ? 0 : need.end - have.end);
  }
  return padding;
}

at::Tensor pad(const at::Tensor& input, const Padding& padding, double value) {
  if (padding.none()) return input;
  std::vector<int64_t> widths;  // libtorch counts axes from the last
  for (size_t axis = padding.before.size(); axis-- > 0;) {
    widths.push_back(padding.before[axis]);
    widths.push_back(padding.after[axis]);
  }
  return at::constant_pad_nd(input, widths, value);
}

at::Tensor unpad(const at::Tensor& gradient, const Padding& padding) {
  if (padding.none()) return gradient;
  at::Tensor inside = gradient;
  for (size_t axis = 0; axis < padding.before.size(); ++axis) {
    const auto dim = static_cast<int64_t>(axis) + 2;
    const int64_t length = gradient.size(dim) - padding.before[axis] - padding.after[axis];
    inside = inside.narrow(dim, padding.before[axis], length);
  }
  return inside;
}

void clear_padding(const Backend& backend, const Patch& patch, const Box& image) {
  if (patch.box.empty()) return;
  const Box inside = intersect(patch.box, image);
  const std::vector<Box> outside =
      inside.empty() ? std::vector{patch.box} : difference(patch.box, inside);
  for (const Box& box : outside) backend.clear(patch, box);
}

}  // namespace mpi4dl
