// What MPI may do with the memory of a simulated device: with MPI4DL_SIMULATED_MPI=aware, and
// without.
#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>

#include "comm/communicator.hpp"
#include "support/simulated_device.hpp"
#include "support/simulated_device/fixture.hpp"
#include "support/world.hpp"

namespace mpi4dl::simulated {
namespace {

using at::Tensor;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

MPI_Comm comm() {
  return ::mpi4dl::testing::world().handle();
}
bool first() {
  return ::mpi4dl::testing::world().rank() == 0;
}

Tensor ones() {
  return at::ones({4}, at::device(device()));
}

void wait() {
  const c10::impl::VirtualGuardImpl guard(device().type());
  guard.synchronizeStream(guard.getStream(device()));
}

/// Sends to the other rank, or receives from it.
MPI_Request start(bool send, const Tensor& tensor) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int bytes = static_cast<int>(tensor.nbytes());
  if (send)
    MPI_Isend(tensor.data_ptr(), bytes, MPI_BYTE, 1, 0, comm(), &request);
  else
    MPI_Irecv(tensor.data_ptr(), bytes, MPI_BYTE, 0, 0, comm(), &request);
  return request;
}

TEST(SimulatedMpi, SaysWhetherItIsAware) {
  EXPECT_EQ(::mpi4dl::testing::world().context().device_aware, mpi_is_aware());
}

TEST(SimulatedMpi, StartsOnTheDeviceOfTheRank) {
  EXPECT_EQ(where_mpi_started(), ::mpi4dl::testing::backend().device());
}

TEST(SimulatedMpi, CarriesHostMemory) {
  Tensor host = first() ? at::ones({4}) : at::zeros({4});
  MPI_Request request = start(first(), host);
  MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  EXPECT_EQ(host.sum().item<float>(), 4);
}

TEST(SimulatedMpi, RefusesDeviceMemoryThatItIsNotAwareOf) {
  if (mpi_is_aware()) GTEST_SKIP() << "it is aware of it";
  const Tensor x = ones();
  wait();
  EXPECT_THAT([&] { start(true, x); },
              ThrowsMessage<Refused>(
                  HasSubstr("MPI_Isend was given memory of a device, and this MPI is not aware")));
  EXPECT_THAT([&] { start(false, x); },
              ThrowsMessage<Refused>(
                  HasSubstr("MPI_Irecv was given memory of a device, and this MPI is not aware")));
}

TEST(SimulatedMpi, RefusesDeviceMemoryInCollectives) {
  const Tensor x = ones(), host = at::ones({8});
  wait();
  MPI_Request request = MPI_REQUEST_NULL;
  void* memory = x.data_ptr();
  const auto refused = [](const char* function) {
    return ThrowsMessage<Refused>(
        HasSubstr(std::string(function) + " was given memory of a device"));
  };
  EXPECT_THAT(
      [&] { MPI_Iallreduce(MPI_IN_PLACE, memory, 4, MPI_FLOAT, MPI_SUM, comm(), &request); },
      refused("MPI_Iallreduce"));
  EXPECT_THAT(
      [&] { MPI_Iallreduce(memory, host.data_ptr(), 4, MPI_FLOAT, MPI_SUM, comm(), &request); },
      refused("MPI_Iallreduce"));
  EXPECT_THAT([&] { MPI_Ibcast(memory, 4, MPI_FLOAT, 0, comm(), &request); },
              refused("MPI_Ibcast"));
  EXPECT_THAT(
      [&] {
        MPI_Iallgather(memory, 4, MPI_FLOAT, host.data_ptr(), 4, MPI_FLOAT, comm(), &request);
      },
      refused("MPI_Iallgather"));
  EXPECT_THAT([&] { MPI_Reduce_local(host.data_ptr(), memory, 4, MPI_FLOAT, MPI_SUM); },
              refused("MPI_Reduce_local"));
}

TEST(SimulatedMpi, NeedsTheHostToHaveWaited) {
  if (!mpi_is_aware()) GTEST_SKIP() << "it takes no device memory";
  const Deterministic nothing_fills_fresh_memory(false);
  const Tensor written = ones();
  EXPECT_THAT([&] { start(true, written); },
              ThrowsMessage<Refused>("MPI_Isend reads what aten::fill_ on stream 0 of device 0 "
                                     "writes; the host has not waited for it"));
  EXPECT_THAT([&] { start(false, written); },
              ThrowsMessage<Refused>(HasSubstr("MPI_Irecv writes what aten::fill_")));
  wait();
  const Tensor read = written.sin();
  EXPECT_THAT([&] { start(false, written); },
              ThrowsMessage<Refused>(
                  HasSubstr("MPI_Irecv writes what aten::sin on stream 0 of device 0 reads")));
  const Tensor fresh = at::empty({4}, at::device(device()));
  EXPECT_THAT(
      [&] { start(false, fresh); },
      ThrowsMessage<Refused>(HasSubstr(
          "MPI_Irecv writes memory that an allocation on stream 0 of device 0 may have taken")));
  wait();
}

TEST(SimulatedMpi, CarriesDeviceMemoryThatIsAtRest) {
  if (!mpi_is_aware()) GTEST_SKIP() << "it takes no device memory";
  Tensor x = first() ? ones() : at::empty({4}, at::device(device()));
  wait();
  MPI_Request request = start(first(), x);
  EXPECT_THROW(x.mul_(2), Refused);
  if (first())
    EXPECT_EQ(x.sin().device(), device()) << "who sends may read";
  else
    EXPECT_THAT(
        [&] { x.sin(); },
        ThrowsMessage<Refused>(HasSubstr("reads what MPI_Irecv, which is under way, writes")));
  int done = 0;
  while (done == 0) MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE);
  x.mul_(2);
  EXPECT_EQ(x.sum().item<float>(), 8);
}

TEST(SimulatedMpi, KeepsItsMemoryFromBeingFreed) {
  if (!mpi_is_aware()) GTEST_SKIP() << "it takes no device memory";
  Tensor x = first() ? ones() : at::empty({4}, at::device(device()));
  wait();
  MPI_Request request = start(first(), x);
  x = Tensor();
  EXPECT_THAT([&] { ones(); }, ThrowsMessage<Refused>(HasSubstr("was freed while MPI_I")));
  MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
}

}  // namespace
}  // namespace mpi4dl::simulated
