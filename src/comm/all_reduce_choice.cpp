#include "comm/all_reduce_choice.hpp"

#include "base/error.hpp"
#include "comm/direct_all_reduce.hpp"
#include "comm/node/node_all_reduce.hpp"

namespace mpi4dl {

AllReduceCase all_reduce_case(const at::Tensor& tensor, const Communicator& group) {
  const bool dense = tensor.is_non_overlapping_and_dense();
  const bool host = dense && tensor.is_cpu();
  return {.bytes = static_cast<int64_t>(tensor.nbytes()),
          .ranks = group.size(),
          .shared_memory = group.size() > 1 && host && NodeAllReduce::of(group) != nullptr,
          .host = host,
          .mpi_reads = dense && !group.needs_staging(tensor)};
}

AllReduceAlgorithm choose_all_reduce(const AllReduceCase& message) {
  using enum AllReduceAlgorithm;
  if (message.ranks == 1) return none;
  if (message.host && message.shared_memory) {
    if (message.bytes <= static_cast<int64_t>(NodeAllReduce::kCapacity)) return shared_memory;
    if (message.shardable) return sharded_in_node;
  } else if (message.host && message.mpi_reads && reduces_directly(message.ranks, message.bytes)) {
    return direct;
  }
  return message.mpi_reads ? mpi : staged_mpi;
}

std::string explain(const AllReduceCase& message) {
  const auto because = [&] {
    switch (choose_all_reduce(message)) {
      case AllReduceAlgorithm::none:
        return "stay as they are, because there is no other rank";
      case AllReduceAlgorithm::shared_memory:
        return "go through shared memory in one round, because they fit its buffer";
      case AllReduceAlgorithm::sharded_in_node:
        return "are reduced in shards, because the ranks can read each other's memory";
      case AllReduceAlgorithm::direct:
        return "go from everybody to everybody, because few small messages take the time of one";
      case AllReduceAlgorithm::mpi:
        return "are left to MPI, because they are too many for messages to everybody";
      case AllReduceAlgorithm::staged_mpi:
        return "are left to MPI in a copy, because it cannot use them where they lie";
    }
    throw Error("unknown algorithm");
  };
  return fmt::format("{} bytes on {} {} {}", message.bytes, message.ranks,
                     message.ranks == 1 ? "rank" : "ranks", because());
}

}  // namespace mpi4dl
