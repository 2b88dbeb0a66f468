#include "comm/slice_reduction.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "comm/check.hpp"
#include "comm/idle_section.hpp"
#include "comm/shared_memory.hpp"
#include "geometry/interval.hpp"

namespace mpi4dl {
namespace {

/// So that sums stay in the processor's cache until they are complete.
constexpr int64_t kPieceBytes = int64_t{16} << 10;

class SliceReduction {
 public:
  SliceReduction(const at::Tensor& numbers, const Communicator& comm, Bulletin& bulletin,
                 const std::function<WaitReason()>& reason)
      : comm_(comm),
        bulletin_(bulletin),
        reason_(reason),
        elements_(numbers.numel()),
        width_(static_cast<int64_t>(numbers.element_size())),
        piece_(kPieceBytes / width_) {
    const SharedMemory& memory = bulletin.memory();
    std::vector<int64_t> offsets(comm.size(), 0);
    offsets[comm.rank()] = *memory.offset_of(numbers);
    meet(offsets);
    for (int rank = 0; rank < comm.size(); ++rank)
      numbers_.push_back(memory.address(comm.world_rank(rank), offsets[rank]));
  }

  void reduce_own_slice(MPI_Datatype type, MPI_Op operation) const {
    std::array<std::byte, kPieceBytes> sum;
    const auto [begin, end] = slice(comm_.rank());
    for (int64_t at = begin; at < end; at += piece_) {
      const int64_t count = std::min(piece_, end - at);
      std::memcpy(sum.data(), numbers_[0] + at * width_, count * width_);
      for (size_t rank = 1; rank < numbers_.size(); ++rank)
        mpi(MPI_Reduce_local(numbers_[rank] + at * width_, sum.data(), static_cast<int>(count),
                             type, operation));
      std::memcpy(numbers_[comm_.rank()] + at * width_, sum.data(), count * width_);
    }
  }

  void copy_other_slices() const {
    for (int rank = 0; rank < comm_.size(); ++rank) {
      if (rank == comm_.rank()) continue;
      const auto [begin, end] = slice(rank);
      std::memcpy(numbers_[comm_.rank()] + begin * width_, numbers_[rank] + begin * width_,
                  (end - begin) * width_);
    }
  }

  void meet() const {
    std::vector<int64_t> nothing(1);
    meet(nothing);
  }

 private:
  /// The elements that a rank reduces: whole pieces, so that two ranks never write into the same
  /// cache line.
  Interval slice(int rank) const {
    const Interval pieces = part((elements_ + piece_ - 1) / piece_, rank, comm_.size());
    return {pieces.begin * piece_, std::min(pieces.end * piece_, elements_)};
  }

  /// All ranks are here, and the sums of what each brought are everywhere.
  void meet(std::vector<int64_t>& brought) const {
    bulletin_.all_reduce(std::as_writable_bytes(std::span(brought)),
                         static_cast<int>(brought.size()), MPI_INT64_T, MPI_SUM, comm_, reason_);
  }

  const Communicator& comm_;
  Bulletin& bulletin_;
  const std::function<WaitReason()>& reason_;
  int64_t elements_, width_, piece_;
  std::vector<std::byte*> numbers_;  // of all ranks
};

}  // namespace

void all_reduce_in_slices(at::Tensor& numbers, MPI_Datatype type, MPI_Op operation,
                          const Communicator& comm, Bulletin& bulletin,
                          const std::function<WaitReason()>& reason) {
  const IdleSection section(comm.context(), &IdleTime::communication);
  SharedMemory& memory = bulletin.memory();
  at::Tensor shared = numbers;
  if (!memory.offset_of(numbers)) {
    const std::array<int64_t, 1> shape{numbers.numel()};
    shared = memory.empty(shape, numbers.scalar_type(), c10::MemoryFormat::Contiguous);
    std::memcpy(shared.data_ptr(), numbers.data_ptr(), numbers.nbytes());
  }
  const SliceReduction reduction(shared, comm, bulletin, reason);
  reduction.reduce_own_slice(type, operation);
  reduction.meet();
  reduction.copy_other_slices();
  reduction.meet();  // nobody reads these numbers any more
  if (!shared.is_same(numbers))
    std::memcpy(numbers.data_ptr(), shared.data_ptr(), numbers.nbytes());
}

}  // namespace mpi4dl
