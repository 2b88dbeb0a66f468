#include "import/axes.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>

namespace mpi4dl {
namespace {

using Of = Factor::Of;

int64_t size_of(const Factor& factor, bool exported) {
  return exported && factor.exported >= 0 ? factor.exported : factor.size;
}

/// Computes the one size that is -1.
bool fill_in(std::vector<int64_t>& sizes, int64_t elements) {
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& size : sizes) {
    if (size < -1 || (size == -1 && open != nullptr)) return false;
    if (size == -1)
      open = &size;
    else if (__builtin_mul_overflow(known, size, &known))
      return false;
  }
  if (open == nullptr) return known == elements;
  if (known == 0 || elements % known != 0) return false;
  *open = elements / known;
  return true;
}

/// Takes the first `outer` of the channels that a factor has, and leaves the rest.
Factor split_channels(Factor& factor, int64_t outer) {
  Factor front = factor;
  front.size = front.exported = outer;
  factor.size = factor.exported = factor.size / outer;
  front.step = factor.step * factor.size;
  return front;
}

/// Takes factors whose product is `size` off the front.
std::optional<Axis> take(std::deque<Factor>& rest, int64_t size, bool exported) {
  Axis axis;
  if (size == 1 && !rest.empty() && size_of(rest.front(), exported) == 1) {
    axis.push_back(rest.front());
    rest.pop_front();
    return axis;
  }
  for (int64_t left = size; left > 1;) {
    if (rest.empty()) return std::nullopt;
    Factor& next = rest.front();
    const int64_t here = size_of(next, exported);
    if (here > 0 && left % here == 0) {
      left /= here;
      axis.push_back(next);
      rest.pop_front();
    } else if (next.of == Of::channels && here % left == 0) {
      axis.push_back(split_channels(next, left));
      left = 1;
    } else {
      return std::nullopt;
    }
  }
  return axis;
}

void join_in(Axis& axis) {
  for (size_t i = 1; i < axis.size();) {
    Factor &before = axis[i - 1], &here = axis[i];
    const bool joined = before.of == Of::channels && here.of == Of::channels &&
                        before.step == here.size * here.step;
    if (!joined) {
      ++i;
      continue;
    }
    before.size = before.exported = before.size * here.size;
    before.step = here.step;
    axis.erase(axis.begin() + static_cast<int64_t>(i));
  }
}

/// Multiplies the parts that channels have been split into.
int64_t channels_in(const Axes& axes) {
  int64_t product = 1;
  for (const Axis& axis : axes)
    for (const Factor& factor : axis)
      if (factor.of == Of::channels) product *= factor.size;
  return product;
}

}  // namespace

int64_t length(const Axis& axis) {
  int64_t product = 1;
  for (const Factor& factor : axis) product *= factor.size;
  return product;
}

std::vector<int64_t> lengths(const Axes& axes) {
  std::vector<int64_t> all;
  for (const Axis& axis : axes) all.push_back(length(axis));
  return all;
}

Extents exported_space(const Axes& axes) {
  Extents space;
  for (size_t axis = 2; axis < axes.size(); ++axis)
    space.push_back(axes[axis].empty() ? 1 : axes[axis][0].exported);
  return space;
}

std::string to_string(const Axes& axes) {
  return fmt::format("{}", fmt::join(lengths(axes), "x"));
}

Axes plain_axes(int64_t batch, const Shape& shape) {
  Axes axes{{{.of = Of::batch, .size = batch, .exported = batch}},
            {{.of = Of::channels, .size = shape.channels, .exported = shape.channels}}};
  for (int axis = 0; axis < static_cast<int>(shape.space.size()); ++axis)
    axes.push_back({{.of = Of::space, .size = shape.space[axis], .axis = axis}});
  return axes;
}

bool is_batch(const Axis& axis) {
  return axis.size() == 1 && axis[0].of == Of::batch;
}
bool is_channels(const Axis& axis, int64_t channels) {
  return axis.size() == 1 && axis[0].of == Of::channels && axis[0].size == channels &&
         axis[0].step == 1;
}
bool is_space(const Axis& axis) {
  return axis.size() == 1 && axis[0].of == Of::space;
}

bool are_alike(const Axis& a, const Axis& b) {
  return std::ranges::equal(a, b, [](const Factor& x, const Factor& y) {
    if (x.of != y.of || x.axis != y.axis) return false;
    const bool one = x.size == 1 || y.size == 1;
    return x.of != Of::channels || one || (x.size == y.size && x.step == y.step);
  });
}

bool are_plain(const Axes& axes, const Shape& shape) {
  if (axes.size() < 2 || !is_batch(axes[0]) || !is_channels(axes[1], shape.channels)) return false;
  if (!shape.spatial())
    return std::all_of(axes.begin() + 2, axes.end(), [](const Axis& axis) { return axis.empty(); });
  if (axes.size() != 2 + shape.space.size()) return false;
  for (size_t i = 2; i < axes.size(); ++i)
    if (!is_space(axes[i]) || axes[i][0].axis != static_cast<int>(i) - 2) return false;
  return true;
}

bool are_permuted(const Axes& axes, const Shape& shape) {
  return std::ranges::all_of(axes, [&](const Axis& axis) {
    return axis.empty() || is_batch(axis) || is_channels(axis, shape.channels) || is_space(axis);
  });
}

std::optional<Axes> regroup(const Axes& axes, std::vector<int64_t> sizes, bool exported) {
  std::deque<Factor> rest;
  int64_t elements = 1;
  for (const Axis& axis : axes)
    for (const Factor& factor : axis) {
      rest.push_back(factor);
      if (__builtin_mul_overflow(elements, size_of(factor, exported), &elements))
        return std::nullopt;
    }
  if (!fill_in(sizes, elements)) return std::nullopt;
  Axes result;
  for (const int64_t size : sizes) {
    std::optional<Axis> axis = take(rest, size, exported);
    if (!axis) return std::nullopt;
    result.push_back(std::move(*axis));
  }
  for (const Factor& factor : rest) {
    if (size_of(factor, exported) != 1 || result.empty()) return std::nullopt;
    result.back().push_back(factor);
  }
  join_channels(result);
  return result;
}

Axes replace_shape(const Axes& axes, const Shape& shape) {
  Axes result = axes;
  const bool same_channels = channels_in(axes) == shape.channels;
  for (Axis& axis : result)
    for (Factor& factor : axis) {
      if (factor.of == Of::channels && !same_channels)
        factor.size = factor.exported = shape.channels;
      if (factor.of == Of::space && factor.size != shape.space[factor.axis]) {
        factor.size = shape.space[factor.axis];
        factor.exported = -1;
      }
    }
  return result;
}

void join_channels(Axes& axes) {
  for (Axis& axis : axes) join_in(axis);
}

}  // namespace mpi4dl
