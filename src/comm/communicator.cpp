#include "comm/communicator.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "comm/bulletin.hpp"
#include "comm/check.hpp"
#include "comm/direct_reduction.hpp"
#include "comm/shared_memory.hpp"
#include "comm/slice_reduction.hpp"

namespace mpi4dl {
namespace {

bool dense(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense();
}

/// Runs `call(offset, count)` over [0, total) in pieces that MPI can count in an int.
template <typename Call>
void in_pieces(int64_t total, int64_t largest, Call&& call) {
  for (int64_t offset = 0; offset < total; offset += largest)
    call(offset, static_cast<int>(std::min(largest, total - offset)));
}

std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

}  // namespace

Communicator::Communicator(MPI_Comm comm, std::shared_ptr<CommContext> context)
    : comm_(new MPI_Comm(comm),
            [](MPI_Comm* owned) {
              int finalized = 0;
              MPI_Finalized(&finalized);
              if (*owned != MPI_COMM_WORLD && finalized == 0) MPI_Comm_free(owned);
              delete owned;
            }),
      context_(std::move(context)) {
  mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  mpi(MPI_Comm_rank(comm, &rank_));
  int size = 0;
  mpi(MPI_Comm_size(comm, &size));
  MPI_Group here = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  mpi(MPI_Comm_group(comm, &here));
  mpi(MPI_Comm_group(MPI_COMM_WORLD, &world));
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  auto world_ranks = std::make_shared<std::vector<int>>(size);
  mpi(MPI_Group_translate_ranks(here, size, ranks.data(), world, world_ranks->data()));
  world_ranks_ = std::move(world_ranks);
  MPI_Group_free(&here);
  MPI_Group_free(&world);
}

bool Communicator::on_one_node() const {
  const auto& memory = context_->shared_memory;
  return std::ranges::all_of(*world_ranks_, [&](int rank) {
    return rank == context_->world_rank || (memory && memory->reaches(rank));
  });
}

std::optional<Communicator> Communicator::split(int color, int key) const {
  MPI_Comm part = MPI_COMM_NULL;
  mpi(MPI_Comm_split(handle(), color < 0 ? MPI_UNDEFINED : color, key, &part));
  if (part == MPI_COMM_NULL) return std::nullopt;
  return Communicator(part, context_);
}

std::optional<Communicator> Communicator::subgroup(std::span<const int> ranks) const {
  if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end()) return std::nullopt;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  mpi(MPI_Comm_group(handle(), &all));
  mpi(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some));
  MPI_Comm part = MPI_COMM_NULL;
  mpi(MPI_Comm_create_group(handle(), some, /*tag=*/0, &part));
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return Communicator(part, context_);
}

Pending Communicator::send(const at::Tensor& tensor, int to, int tag) const {
  const at::Tensor host = needs_staging(tensor) ? tensor.cpu().clone() : tensor;
  ensure(dense(host), "only dense tensors can be sent");
  return send({bytes_of(host), host.nbytes()}, std::make_shared<at::Tensor>(host), to, tag);
}

Pending Communicator::send(std::span<const std::byte> bytes, std::shared_ptr<void> owner, int to,
                           int tag) const {
  const auto size = static_cast<int64_t>(bytes.size());
  Pending pending(context_, {"send", size, world_rank(to), nullptr}, std::move(owner));
  in_pieces(size, context_->max_message_bytes, [&](int64_t offset, int count) {
    mpi(MPI_Isend(bytes.data() + offset, count, MPI_BYTE, to, tag, handle(),
                  pending.add_request()));
  });
  return pending;
}

Pending Communicator::receive(const at::Tensor& tensor, int from, int tag) const {
  ensure(dense(tensor), "messages can only be received into dense tensors");
  const bool staged = needs_staging(tensor);
  const at::Tensor host =
      staged ? at::empty_like(tensor, tensor.options().device(at::kCPU)) : tensor;
  Pending pending =
      receive({bytes_of(host), host.nbytes()}, std::make_shared<at::Tensor>(host), from, tag);
  pending.give(tensor);
  if (staged) pending.then([tensor, host] { tensor.copy_(host); });
  return pending;
}

Pending Communicator::receive(std::span<std::byte> bytes, std::shared_ptr<void> owner, int from,
                              int tag) const {
  const auto size = static_cast<int64_t>(bytes.size());
  Pending pending(context_, {"receive", size, world_rank(from), nullptr}, std::move(owner));
  in_pieces(size, context_->max_message_bytes, [&](int64_t offset, int count) {
    mpi(MPI_Irecv(bytes.data() + offset, count, MPI_BYTE, from, tag, handle(),
                  pending.add_request()));
  });
  return pending;
}

/// In one turn, with ways of their own; false where there are none, or the numbers are many.
bool Communicator::reduce_few(const at::Tensor& numbers, int64_t count, MPI_Datatype type,
                              MPI_Op operation, const std::function<WaitReason()>& why) const {
  const std::span values(bytes_of(numbers), numbers.nbytes());
  Bulletin* bulletin = Bulletin::of(*this);
  if (bulletin != nullptr && values.size() <= Bulletin::kCapacity) {
    bulletin->all_reduce(values, static_cast<int>(count), type, operation, *this, why);
  } else if (bulletin == nullptr && !context_->stage_through_host &&
             reduces_directly(*this, values.size())) {
    all_reduce_directly(values, static_cast<int>(count), type, operation, *this);
  } else {
    return false;
  }
  return true;
}

void Communicator::all_reduce(at::Tensor& tensor, Reduction reduction) const {
  if (size() > 1 && tensor.is_cpu() && dense(tensor)) {
    const std::function<WaitReason()> why = [&] {
      return reason("all-reduce", static_cast<int64_t>(tensor.nbytes()));
    };
    const MPI_Datatype type = mpi_type(tensor.scalar_type());
    const MPI_Op operation = mpi_op(reduction, tensor.scalar_type());
    if (reduce_few(tensor, tensor.numel(), type, operation, why)) return;
    if (Bulletin* bulletin = Bulletin::of(*this))
      return all_reduce_in_slices(tensor, type, operation, {*this, *bulletin, why});
  }
  if (dense(tensor) && !needs_staging(tensor)) {
    start_all_reduce(tensor, reduction).finish();
    return;
  }
  at::Tensor host = tensor.cpu().contiguous().clone();
  start_all_reduce(host, reduction).finish();
  tensor.copy_(host);
}

Pending Communicator::start_all_reduce(const at::Tensor& tensor, Reduction reduction) const {
  ensure(dense(tensor), "only dense tensors can be reduced");
  const MPI_Datatype type = mpi_type(tensor.scalar_type());
  const MPI_Op operation = mpi_op(reduction, tensor.scalar_type());
  Pending pending(context_, reason("all-reduce", static_cast<int64_t>(tensor.nbytes())),
                  std::make_shared<at::Tensor>(tensor));
  pending.give(tensor);
  if (size() == 1) return pending;
  const int64_t width = static_cast<int64_t>(tensor.element_size());
  in_pieces(tensor.numel(), context_->max_message_bytes / width, [&](int64_t offset, int count) {
    mpi(MPI_Iallreduce(MPI_IN_PLACE, bytes_of(tensor) + offset * width, count, type, operation,
                       handle(), pending.add_request()));
  });
  return pending;
}

std::optional<Interval> Communicator::slice_of(const at::Tensor& numbers) const {
  const Bulletin* bulletin = size() > 1 ? Bulletin::of(*this) : nullptr;
  if (bulletin == nullptr || !dense(numbers) || !bulletin->memory().offset_of(numbers) ||
      numbers.nbytes() <= Bulletin::kCapacity)
    return std::nullopt;
  return slice(numbers.numel(), rank(), size());
}

void Communicator::reduce_slice(const at::Tensor& numbers) const {
  const std::function<WaitReason()> why = [&] {
    return reason("reduction", static_cast<int64_t>(numbers.nbytes()));
  };
  mpi4dl::reduce_slice(numbers, mpi_type(numbers.scalar_type()),
                       mpi_op(Reduction::sum, numbers.scalar_type()),
                       {*this, *Bulletin::of(*this), why});
}

void Communicator::gather_slices(const at::Tensor& numbers) const {
  const std::function<WaitReason()> why = [&] {
    return reason("gathering", static_cast<int64_t>(numbers.nbytes()));
  };
  mpi4dl::gather_slices(numbers, {*this, *Bulletin::of(*this), why});
}

void Communicator::all_reduce_moments(at::Tensor& moments) const {
  ensure(moments.is_contiguous() && moments.scalar_type() == at::kDouble && moments.size(-1) == 3,
         "moments are contiguous float64 triples");
  if (size() == 1) return;
  const int64_t count = moments.numel() / 3;
  const std::function<WaitReason()> why = [&] {
    return reason("all-reduce of moments", static_cast<int64_t>(moments.nbytes()));
  };
  if (reduce_few(moments, count, moments_type(), moments_op(), why)) return;
  Pending pending(context_, why(), std::make_shared<at::Tensor>(moments));
  mpi(MPI_Iallreduce(MPI_IN_PLACE, moments.data_ptr(), static_cast<int>(count), moments_type(),
                     moments_op(), handle(), pending.add_request()));
  pending.finish();
}

void Communicator::broadcast(at::Tensor& tensor, int root) const {
  const bool direct = dense(tensor) && !needs_staging(tensor);
  at::Tensor host = direct ? tensor : tensor.cpu().contiguous().clone();
  const int64_t bytes = static_cast<int64_t>(host.nbytes());
  Pending pending(context_, {"broadcast", bytes, world_rank(root), nullptr},
                  std::make_shared<at::Tensor>(host));
  in_pieces(bytes, context_->max_message_bytes, [&](int64_t offset, int count) {
    mpi(MPI_Ibcast(bytes_of(host) + offset, count, MPI_BYTE, root, handle(),
                   pending.add_request()));
  });
  pending.finish();
  if (!direct) tensor.copy_(host);
}

void Communicator::progress() const {
  int found = 0;
  mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, handle(), &found, MPI_STATUS_IGNORE));
}

void Communicator::await(const std::function<bool()>& done,
                         const std::function<WaitReason()>& reason) const {
  wait_until(
      [&] {
        if (done()) return true;
        progress();
        return false;
      },
      *context_, reason);
}

void Communicator::barrier() const {
  Pending pending(context_, reason("barrier", 0), nullptr);
  mpi(MPI_Ibarrier(handle(), pending.add_request()));
  pending.finish();
}

std::vector<std::byte> Communicator::all_gather(std::span<const std::byte> mine) const {
  struct Buffers {
    std::vector<std::byte> mine, all;
  };
  auto buffers = std::make_shared<Buffers>();
  buffers->mine.assign(mine.begin(), mine.end());
  buffers->all.resize(mine.size() * size());
  const int count = static_cast<int>(mine.size());
  Pending pending(context_, reason("all-gather", count), buffers);
  mpi(MPI_Iallgather(buffers->mine.data(), count, MPI_BYTE, buffers->all.data(), count, MPI_BYTE,
                     handle(), pending.add_request()));
  pending.finish();
  return std::move(buffers->all);
}

int Communicator::reserve_tags(int count) const {
  const int first = *next_tag_;
  *next_tag_ += count;
  return first;
}

WaitReason Communicator::reason(const char* operation, int64_t bytes) const {
  return {operation, bytes, -1, world_ranks_};
}

bool Communicator::needs_staging(const at::Tensor& tensor) const {
  return context_->stage_through_host || (!tensor.is_cpu() && !context_->device_aware);
}

}  // namespace mpi4dl
