#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/shape.hpp"

namespace mpi4dl {

// A graph's value is a map of channels and pixels, or a vector of channels. PyTorch also has views
// of it: permuted, flattened, split. A view is no operator; it is written here as what each of its
// axes is made of.

/// Is (a part of) an axis of a value: images, channels or one of the spatial axes.
struct Factor {
  enum class Of { batch, channels, space };
  Of of = Of::batch;
  int64_t size = 1;
  int64_t exported = -1;  ///< its size when the file was written; -1 where that is not known
  int axis = 0;           ///< which of the spatial axes
  int64_t step = 1;       ///< of channels: the distance between neighbours
};

/// Is an axis of a view, the product of its factors; without any it has the length 1.
using Axis = std::vector<Factor>;
using Axes = std::vector<Axis>;

int64_t length(const Axis& axis);
std::vector<int64_t> lengths(const Axes& axes);
/// Returns the lengths of all axes but the first two when the file was written; -1 where they may
/// vary.
Extents exported_space(const Axes& axes);
/// Returns "2x16x8x8".
std::string to_string(const Axes& axes);

/// Returns the axes (N, C, H, W) of a map, or (N, C) of a vector.
Axes plain_axes(int64_t batch, const Shape& shape);

bool is_batch(const Axis& axis);
bool is_channels(const Axis& axis, int64_t channels);
bool is_space(const Axis& axis);
/// Returns whether two axes are made of the same things in the same order; of channels, parts with
/// the same neighbours. One that is 1 long goes with each of its kind.
bool are_alike(const Axis& a, const Axis& b);
/// Returns whether these are N, C and all spatial axes; of a vector N, C and any that are 1 long.
bool are_plain(const Axes& axes, const Shape& shape);
/// Returns whether there is an axis N, one C, and the spatial axes each, in any order.
bool are_permuted(const Axes& axes, const Shape& shape);

/// Returns the axes as a view of these sizes, one of which may be -1; nothing where that would need
/// a part of an axis other than channels. `exported`: the sizes are those of the exported file.
std::optional<Axes> regroup(const Axes& axes, std::vector<int64_t> sizes, bool exported);

/// Replaces the channels, and the sizes of the spatial axes where there are any.
Axes replace_shape(const Axes& axes, const Shape& shape);

/// Joins parts of channels that follow one another, as after a view and its inverse.
void join_channels(Axes& axes);

}  // namespace mpi4dl
