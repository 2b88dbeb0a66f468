#include "comm/direct_reduction.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "comm/check.hpp"

namespace mpi4dl {
namespace {

// On a network that carries a message in a microsecond or two, a rank sends about as many in the
// time that log2(8) of them would take one after the other.
constexpr int kRanks = 8;
constexpr size_t kBytesSent = size_t{32} << 10;

}  // namespace

bool reduces_directly(const Communicator& comm, size_t bytes) {
  return comm.size() <= kRanks && bytes * (comm.size() - 1) <= kBytesSent;
}

void all_reduce_directly(std::span<std::byte> values, int count, MPI_Datatype type,
                         MPI_Op operation, const Communicator& comm) {
  const auto numbers = std::make_shared<std::vector<std::byte>>(values.size() * comm.size());
  const auto of = [&](int rank) {
    return std::span(*numbers).subspan(rank * values.size(), values.size());
  };
  std::ranges::copy(values, of(comm.rank()).begin());
  std::vector<Pending> messages;
  for (int rank = 0; rank < comm.size(); ++rank)
    if (rank != comm.rank())
      messages.push_back(comm.receive(of(rank), numbers, rank, Communicator::kReductionTag));
  for (int rank = 0; rank < comm.size(); ++rank)
    if (rank != comm.rank())
      messages.push_back(comm.send(of(comm.rank()), numbers, rank, Communicator::kReductionTag));
  for (Pending& message : messages) message.finish();
  std::ranges::copy(of(0), values.begin());
  for (int rank = 1; rank < comm.size(); ++rank)
    mpi(MPI_Reduce_local(of(rank).data(), values.data(), count, type, operation));
}

}  // namespace mpi4dl
