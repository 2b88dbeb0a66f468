#include "graph/definition.hpp"

#include "base/error.hpp"

namespace mpi4dl {

Extents slide(const std::vector<Window>& windows, const Shape& input, const Extents& kernel,
              bool ceil_mode) {
  Extents outputs, spans, padded;
  for (const Window& window : windows) {
    const int64_t length = input.space[outputs.size()];
    outputs.push_back(window.outputs(length, ceil_mode));
    spans.push_back(window.span());
    padded.push_back(length + window.padding + window.padding_end());
  }
  for (const int64_t length : outputs)
    validate(length >= 1, "its kernel {} covers {} pixels, but the input has only {} with padding",
             to_string(kernel), to_string(spans), to_string(padded));
  return outputs;
}

int64_t padded_elements(const std::vector<Window>& windows, const TilePlacement& place) {
  int64_t elements = place.needed[0].length() * place.needed[1].length();
  for (size_t axis = 0; axis < windows.size(); ++axis)
    elements *= windows[axis].need(place.computed[static_cast<int>(axis) + 2]).length();
  return elements;
}

bool symmetric(const std::vector<Window>& windows, const TilePlacement& place) {
  // What is in memory already is not left to libtorch, and has a gradient too.
  if (place.framed) return padded_elements(windows, place) == place.needed.elements();
  for (int axis = 2; axis < place.needed.axes(); ++axis) {
    const Interval need = windows[axis - 2].need(place.computed[axis]);
    const Interval& have = place.needed[axis];
    if (have.begin - need.begin != need.end - have.end) return false;
  }
  return true;
}

void check_paddings(const Extents& padding, const Extents& padding_end, const Shape& input) {
  check_option("padding", padding, 0, input);
  check_option("padding at the end", padding_end, 0, input);
}

void check_pool_padding(const Extents& kernel, const Extents& padding) {
  for (size_t axis = 0; axis < padding.size(); ++axis)
    validate(2 * padding[axis] <= kernel[axis],
             "its padding {} must be at most half of its kernel {}", to_string(padding),
             to_string(kernel));
}

}  // namespace mpi4dl
