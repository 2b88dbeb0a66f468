#include "comm/communicator.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "comm/check.hpp"
#include "comm/node/shared_memory.hpp"
#include "comm/pieces.hpp"
#include "comm/staging.hpp"

namespace mpi4dl {
namespace {

bool dense(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense();
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

Communicator Communicator::with_backend(std::shared_ptr<const Backend> backend) const {
  Communicator other = *this;
  other.context_ = std::make_shared<CommContext>(*context_);
  other.context_->backend = std::move(backend);
  return other;
}

Pending Communicator::send(const at::Tensor& tensor, int to, int tag) const {
  const at::Tensor host = needs_staging(tensor) ? staged(tensor, *context_) : tensor;
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

int Communicator::reserve_tags(int count) const {
  const int first = *next_tag_;
  *next_tag_ += count;
  return first;
}

WaitReason Communicator::wait_reason(const char* operation, int64_t bytes) const {
  return {operation, bytes, -1, world_ranks_};
}

bool Communicator::needs_staging(const at::Tensor& tensor) const {
  return context_->stage_through_host || !tensor.is_cpu();
}

}  // namespace mpi4dl
