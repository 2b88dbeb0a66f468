#include "backend/patch.hpp"

#include "base/error.hpp"

namespace mpi4dl {

// The sentence is made only when it is needed: this is asked for each message.
void Patch::require(const Box& part) const {
  if (!box.contains(part))
    throw Error(fmt::format("box {} does not lie inside {}", to_string(part), to_string(box)));
}

at::Tensor Patch::view(const Box& part) const {
  require(part);
  if (part == box) return data;
  int64_t offset = data.storage_offset();
  for (int axis = 0; axis < box.axes(); ++axis)
    offset += (part[axis].begin - box[axis].begin) * data.stride(axis);
  return data.as_strided(part.shape(), data.strides(), offset);  // faster than a slice per axis
}

c10::MemoryFormat memory_format(const Box& box) {
  if (box.axes() == 4) return c10::MemoryFormat::ChannelsLast;
  if (box.axes() == 5) return c10::MemoryFormat::ChannelsLast3d;
  return c10::MemoryFormat::Contiguous;
}

}  // namespace mpi4dl
