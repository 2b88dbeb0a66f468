// MPI as it is when it knows nothing of devices, or, aware, what it is allowed to do with their
// memory. These are the functions that src/comm calls with memory; another one would be caught when
// it touches device memory.
#include <mpi.h>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <mutex>
#include <vector>

#include "support/simulated_device.hpp"
#include "support/simulated_device/memory.hpp"
#include "support/simulated_device/order.hpp"
#include "support/simulated_device/settings.hpp"

namespace mpi4dl::simulated {

bool mpi_is_aware() {
  return settings().aware;
}

namespace {

c10::Device& started_on() {
  static c10::Device device(c10::DeviceType::CPU);
  return device;
}

/// Is a message that reads or writes device memory.
struct Message {
  MPI_Request request;
  int64_t number;
  const void* memory;
};

std::mutex messages_mutex;

std::vector<Message>& messages_under_way() {
  static std::vector<Message>& messages = *new std::vector<Message>;
  return messages;
}

/// Throws Refused where device memory is handed to a function that never takes it.
void only_host_memory(const char* function, std::initializer_list<const void*> buffers) {
  for (const void* buffer : buffers)
    if (is_device_address(buffer))
      throw Refused(
          fmt::format("{} was given memory of a device, which no MPI promises to take "
                      "there; copy it to the host",
                      function));
}

int64_t bytes_of(int count, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return int64_t{count} * size;
}

/// Sends or receives: `transfer` is given the address where MPI finds the bytes.
template <class Transfer>
int point_to_point(const char* function, const void* buffer, int64_t bytes, Access access,
                   MPI_Request* request, Transfer transfer) {
  if (!is_device_address(buffer) || bytes == 0) return transfer(const_cast<void*>(buffer));
  if (!mpi_is_aware())
    throw Refused(
        fmt::format("{} was given memory of a device, and this MPI is not aware of it; "
                    "copy it to the host",
                    function));
  History& history = Memory::instance().at(buffer).history;
  const auto begin = reinterpret_cast<Address>(buffer);
  const int64_t number =
      Order::instance().message_begins(function, {&history, access, {begin, bytes}});
  const int code = transfer(bytes_behind(buffer));
  const std::lock_guard lock(messages_mutex);
  messages_under_way().push_back({*request, number, buffer});
  return code;
}

/// Returns the requests that carry device memory; MPI forgets them when they are over.
std::vector<MPI_Request> remember(int count, const MPI_Request* requests) {
  const std::lock_guard lock(messages_mutex);
  if (messages_under_way().empty()) return {};
  return {requests, requests + count};
}

void ended(const std::vector<MPI_Request>& requests) {
  const std::lock_guard lock(messages_mutex);
  std::erase_if(messages_under_way(), [&](const Message& message) {
    if (std::ranges::find(requests, message.request) == requests.end()) return false;
    if (Block* block = Memory::instance().find(message.memory))
      Order::instance().message_ends(message.number, block->history);
    return true;
  });
}

}  // namespace

c10::Device where_mpi_started() {
  return started_on();
}

}  // namespace mpi4dl::simulated

using mpi4dl::simulated::Access;
using mpi4dl::simulated::only_host_memory;

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  using namespace mpi4dl::simulated;
  started_on() = c10::impl::VirtualGuardImpl(c10::DeviceType::PrivateUse1).getDevice();
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  name_host_accesses();  // MPI and what it loads have handlers of their own
  return code;
}

int MPIX_Query_cuda_support(void) {
  return mpi4dl::simulated::mpi_is_aware() ? 1 : 0;
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return mpi4dl::simulated::point_to_point(
      __func__, buffer, mpi4dl::simulated::bytes_of(count, type), Access::reads, request,
      [&](void* bytes) { return PMPI_Isend(bytes, count, type, to, tag, comm, request); });
}

int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return mpi4dl::simulated::point_to_point(
      __func__, buffer, mpi4dl::simulated::bytes_of(count, type), Access::writes, request,
      [&](void* bytes) { return PMPI_Irecv(bytes, count, type, from, tag, comm, request); });
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const auto asked = mpi4dl::simulated::remember(1, request);
  const int code = PMPI_Test(request, flag, status);
  if (*flag != 0) mpi4dl::simulated::ended(asked);
  return code;
}

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  const auto asked = mpi4dl::simulated::remember(count, requests);
  const int code = PMPI_Testall(count, requests, flag, statuses);
  if (*flag != 0) mpi4dl::simulated::ended(asked);
  return code;
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const auto asked = mpi4dl::simulated::remember(count, requests);
  const int code = PMPI_Waitall(count, requests, statuses);
  mpi4dl::simulated::ended(asked);
  return code;
}

int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  only_host_memory(__func__, {from, to});
  return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}

int MPI_Iallgather(const void* from, int count, MPI_Datatype type, void* to, int to_count,
                   MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request) {
  only_host_memory(__func__, {from, to});
  return PMPI_Iallgather(from, count, type, to, to_count, to_type, comm, request);
}

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  only_host_memory(__func__, {buffer});
  return PMPI_Ibcast(buffer, count, type, root, comm, request);
}

int MPI_Reduce_local(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op) {
  only_host_memory(__func__, {from, to});
  return PMPI_Reduce_local(from, to, count, type, op);
}

}  // extern "C"
