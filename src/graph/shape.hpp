#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

/// Holds a number per spatial axis, [D,] H, W.
using Extents = std::vector<int64_t>;

/// Shape is the shape of a value without its batch axis; it has no spatial axes after flatten or
/// global pooling.
struct Shape {
  int64_t channels = 0;
  Extents space;

  bool spatial() const { return !space.empty(); }
  int64_t elements() const;
  bool operator==(const Shape&) const = default;
};

using Shapes = std::vector<Shape>;

/// Returns "64x128x128".
std::string to_string(const Shape& shape);
/// Returns "128x128".
std::string to_string(const Extents& extents);

/// Returns the product of all extents: how many positions there are.
int64_t positions(const Extents& space);

// What operators ask of their inputs. Each throws the end of a sentence that Graph::add begins with
// the names of the nodes.

/// Returns the only input there is.
const Shape& only(const Shapes& inputs);
/// Returns the only input there is, which must have spatial axes.
const Shape& only_spatial(const Shapes& inputs);
void check_several(const Shapes& inputs);
/// Throws unless an option has one number per spatial axis, each at least `least`, or none, which
/// stands for its default.
void check_option(const char* name, const Extents& values, int64_t least, const Shape& input);
void check_kernel(const Extents& kernel, const Shape& input);
void check_channels(int64_t in, int64_t out, int64_t groups);

}  // namespace mpi4dl
