#include "exchange/patch.hpp"

#include "base/error.hpp"
#include "comm/shared_memory.hpp"

namespace mpi4dl {

// The sentence is made only when it is needed: this is asked for each message.
void Patch::require(const Box& part) const {
  if (!box.contains(part))
    throw Error(fmt::format("box {} does not lie inside {}", to_string(part), to_string(box)));
}

at::Tensor Patch::view(const Box& part) const {
  require(part);
  at::Tensor inside = data;
  for (int axis = 0; axis < box.axes(); ++axis)
    if (part[axis] != box[axis])
      inside = inside.narrow(axis, part[axis].begin - box[axis].begin, part[axis].length());
  return inside;
}

c10::MemoryFormat memory_format(const Box& box) {
  if (box.axes() == 4) return c10::MemoryFormat::ChannelsLast;
  if (box.axes() == 5) return c10::MemoryFormat::ChannelsLast3d;
  return c10::MemoryFormat::Contiguous;
}

Patch make_patch(const Communicator& comm, const Box& box, c10::ScalarType type) {
  return {box,
          empty_for_exchange(comm.context().shared_memory, box.shape(), type, memory_format(box))};
}

}  // namespace mpi4dl
