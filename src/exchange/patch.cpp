#include "exchange/patch.hpp"

#include "backend/backend.hpp"
#include "comm/node/shared_memory.hpp"

namespace mpi4dl {

Patch make_patch(const Communicator& comm, const Box& box, c10::ScalarType type) {
  const CommContext& context = comm.context();
  if (!context.backend->on_host() || !context.shared_memory)
    return context.backend->empty(box, type);
  return {box, context.shared_memory->empty(box.shape(), type, memory_format(box))};
}

}  // namespace mpi4dl
