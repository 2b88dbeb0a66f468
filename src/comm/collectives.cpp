#include "comm/collectives.hpp"

#include <ATen/ATen.h>

#include "backend/host_memory.hpp"
#include "base/error.hpp"
#include "comm/all_reduce_choice.hpp"
#include "comm/check.hpp"
#include "comm/direct_all_reduce.hpp"
#include "comm/node/node_reduce_scatter.hpp"
#include "comm/node/shared_memory.hpp"
#include "comm/pieces.hpp"
#include "comm/staging.hpp"

namespace mpi4dl {
namespace {

/// Describes the elements of a tensor to MPI.
struct Elements {
  MPI_Datatype type;
  MPI_Op operation;
  int64_t bytes;  ///< that one has
  const char* name = "all-reduce";
};

Elements scalars(const at::Tensor& tensor, const AllReduceOptions& options) {
  return {mpi_type(tensor.scalar_type()), mpi_op(options.reduction, tensor.scalar_type()),
          static_cast<int64_t>(tensor.element_size())};
}

Pending start_by_mpi(const at::Tensor& tensor, const Elements& elements,
                     const Communicator& group) {
  const auto bytes = static_cast<int64_t>(tensor.nbytes());
  Pending pending(group.shared_context(), group.wait_reason(elements.name, bytes),
                  std::make_shared<at::Tensor>(tensor));
  pending.give(tensor);
  if (group.size() == 1) return pending;
  const int64_t largest = std::max<int64_t>(1, group.context().max_message_bytes / elements.bytes);
  in_pieces(bytes / elements.bytes, largest, [&](int64_t offset, int count) {
    mpi(MPI_Iallreduce(MPI_IN_PLACE, bytes_of(tensor) + offset * elements.bytes, count,
                       elements.type, elements.operation, group.handle(), pending.add_request()));
  });
  return pending;
}

void run(AllReduceAlgorithm algorithm, at::Tensor& tensor, const Elements& elements,
         const Communicator& group) {
  const std::span values(bytes_of(tensor), tensor.nbytes());
  const auto [type, operation, width, name] = elements;
  const std::function<WaitReason()> reason = [&group, &values, name = name] {
    return group.wait_reason(name, static_cast<int64_t>(values.size()));
  };
  const int count = static_cast<int>(static_cast<int64_t>(values.size()) / width);
  switch (algorithm) {
    case AllReduceAlgorithm::none:
      return;
    case AllReduceAlgorithm::shared_memory:
      return NodeAllReduce::of(group)->all_reduce(values, count, type, operation, group, reason);
    case AllReduceAlgorithm::sharded_in_node:
      return node_sharded_all_reduce(tensor, type, operation,
                                     {group, *NodeAllReduce::of(group), reason});
    case AllReduceAlgorithm::direct:
      return direct_all_reduce(values, count, type, operation, group);
    case AllReduceAlgorithm::mpi:
      return start_by_mpi(tensor, elements, group).finish();
    case AllReduceAlgorithm::staged_mpi: {
      const at::Tensor host = staged(tensor.contiguous(), group.context());
      start_by_mpi(host, elements, group).finish();
      tensor.copy_(host);
    }
  }
}

/// Reduces a device's tensor in host memory: what MPI's collectives do with device memory is no
/// part of its standard, and the ranks of a node can share host memory.
template <typename Reduce>
void reduce_on_host(at::Tensor& tensor, const Communicator& group, const Reduce& reduce) {
  if (group.size() == 1) return;
  at::Tensor host = staged(tensor.contiguous(), group.context());
  reduce(host);
  copy_from_host(tensor, host);
}

}  // namespace

void all_reduce(at::Tensor& tensor, const Communicator& group, const AllReduceOptions& options) {
  if (!tensor.is_cpu())
    return reduce_on_host(tensor, group,
                          [&](at::Tensor& host) { all_reduce(host, group, options); });
  const Elements elements = scalars(tensor, options);
  run(choose_all_reduce(all_reduce_case(tensor, group)), tensor, elements, group);
}

Pending start_all_reduce(const at::Tensor& tensor, const Communicator& group,
                         const AllReduceOptions& options) {
  ensure(tensor.is_cpu() && tensor.is_non_overlapping_and_dense(),
         "only dense tensors in host memory can be reduced without waiting");
  return start_by_mpi(tensor, scalars(tensor, options), group);
}

void all_reduce_moments(at::Tensor& moments, const Communicator& group) {
  ensure(moments.is_contiguous() && moments.scalar_type() == at::kDouble && moments.size(-1) == 3,
         "moments are contiguous float64 triples");
  if (!moments.is_cpu())
    return reduce_on_host(moments, group,
                          [&](at::Tensor& host) { all_reduce_moments(host, group); });
  AllReduceCase message = all_reduce_case(moments, group);
  message.shardable = false;  // a triple is wider than the elements that a shard is made of
  run(choose_all_reduce(message), moments,
      {moments_type(), moments_op(), 3 * sizeof(double), "all-reduce of moments"}, group);
}

std::optional<Interval> own_shard(const at::Tensor& elements, const Communicator& group) {
  const auto algorithm = choose_all_reduce(all_reduce_case(elements, group));
  if (algorithm != AllReduceAlgorithm::sharded_in_node ||
      !NodeAllReduce::of(group)->memory().offset_of(elements))
    return std::nullopt;
  return node_shard(elements.numel(), group.rank(), group.size());
}

void reduce_scatter(const at::Tensor& elements, const Communicator& group) {
  const std::function<WaitReason()> reason = [&] {
    return group.wait_reason("reduce-scatter", static_cast<int64_t>(elements.nbytes()));
  };
  node_reduce_scatter(elements, mpi_type(elements.scalar_type()),
                      mpi_op(Reduction::sum, elements.scalar_type()),
                      {group, *NodeAllReduce::of(group), reason});
}

void all_gather_shards(const at::Tensor& elements, const Communicator& group) {
  const std::function<WaitReason()> reason = [&] {
    return group.wait_reason("all-gather", static_cast<int64_t>(elements.nbytes()));
  };
  node_all_gather(elements, {group, *NodeAllReduce::of(group), reason});
}

void broadcast(at::Tensor& tensor, const Communicator& group, int root) {
  const bool in_place = tensor.is_non_overlapping_and_dense() && !group.needs_staging(tensor);
  at::Tensor host = in_place ? tensor : tensor.cpu().contiguous().clone();
  const auto bytes = static_cast<int64_t>(host.nbytes());
  Pending pending(group.shared_context(), {"broadcast", bytes, group.world_rank(root), nullptr},
                  std::make_shared<at::Tensor>(host));
  in_pieces(bytes, group.context().max_message_bytes, [&](int64_t offset, int count) {
    mpi(MPI_Ibcast(bytes_of(host) + offset, count, MPI_BYTE, root, group.handle(),
                   pending.add_request()));
  });
  pending.finish();
  if (!in_place) tensor.copy_(host);
}

void barrier(const Communicator& group) {
  Pending pending(group.shared_context(), group.wait_reason("barrier", 0), nullptr);
  mpi(MPI_Ibarrier(group.handle(), pending.add_request()));
  pending.finish();
}

std::vector<std::byte> all_gather_bytes(std::span<const std::byte> mine,
                                        const Communicator& group) {
  struct Buffers {
    std::vector<std::byte> mine, all;
  };
  auto buffers = std::make_shared<Buffers>();
  buffers->mine.assign(mine.begin(), mine.end());
  buffers->all.resize(mine.size() * group.size());
  const int count = static_cast<int>(mine.size());
  Pending pending(group.shared_context(), group.wait_reason("all-gather", count), buffers);
  mpi(MPI_Iallgather(buffers->mine.data(), count, MPI_BYTE, buffers->all.data(), count, MPI_BYTE,
                     group.handle(), pending.add_request()));
  pending.finish();
  return std::move(buffers->all);
}

}  // namespace mpi4dl
