#pragma once

#include <ATen/core/Tensor.h>

#include "geometry/box.hpp"

namespace mpi4dl {

/// Patch is a piece of a global tensor: its place and its values, which have the box's shape.
struct Patch {
  Box box;
  at::Tensor data;

  /// Returns the values of `part`, which must lie inside the box; shares memory.
  at::Tensor view(const Box& part) const;

  /// Throws Error unless `part` lies inside the box.
  void require(const Box& part) const;
};

/// Images and volumes have their channels last, so that rows of a halo are contiguous.
c10::MemoryFormat memory_format(const Box& box);

}  // namespace mpi4dl
