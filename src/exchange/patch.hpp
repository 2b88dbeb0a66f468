#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "comm/communicator.hpp"
#include "geometry/box.hpp"

namespace mpi4dl {

/// A piece of a global tensor: its place and its values, which have the box's shape.
struct Patch {
  Box box;
  at::Tensor data;

  /// The values of `part`, which must lie inside the box; shares memory.
  at::Tensor view(const Box& part) const;

  /// Throws Error unless `part` lies inside the box.
  void require(const Box& part) const;
};

/// The layout of images and volumes: channels last, so that rows of a halo are contiguous.
c10::MemoryFormat memory_format(const Box& box);

/// Room for the values of a box, uninitialised, where the node's other ranks can read it.
Patch make_patch(const Communicator& comm, const Box& box, c10::ScalarType type);

}  // namespace mpi4dl
