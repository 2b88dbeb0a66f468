#include "comm/direct_all_reduce.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "comm/check.hpp"

namespace mpi4dl {
namespace {

// On a network that carries a message in a microsecond or two, a rank sends about as many in the
// time that log2(8) of them would take one after the other.
constexpr int kRanks = 8;
constexpr int64_t kBytesSent = int64_t{32} << 10;

}  // namespace

bool reduces_directly(int ranks, int64_t bytes) {
  return ranks <= kRanks && bytes * (ranks - 1) <= kBytesSent;
}

void direct_all_reduce(std::span<std::byte> values, int count, MPI_Datatype type, MPI_Op operation,
                       const Communicator& group) {
  const auto gathered = std::make_shared<std::vector<std::byte>>(values.size() * group.size());
  const auto of = [&](int rank) {
    return std::span(*gathered).subspan(rank * values.size(), values.size());
  };
  std::ranges::copy(values, of(group.rank()).begin());
  std::vector<Pending> messages;
  for (int rank = 0; rank < group.size(); ++rank)
    if (rank != group.rank())
      messages.push_back(group.receive(of(rank), gathered, rank, Communicator::kReductionTag));
  for (int rank = 0; rank < group.size(); ++rank)
    if (rank != group.rank())
      messages.push_back(group.send(of(group.rank()), gathered, rank, Communicator::kReductionTag));
  for (Pending& message : messages) message.finish();
  std::ranges::copy(of(0), values.begin());
  for (int rank = 1; rank < group.size(); ++rank)
    mpi(MPI_Reduce_local(of(rank).data(), values.data(), count, type, operation));
}

}  // namespace mpi4dl
