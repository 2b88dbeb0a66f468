#include "comm/slice_reduction.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "comm/check.hpp"
#include "comm/idle_section.hpp"
#include "comm/shared_memory.hpp"

namespace mpi4dl {
namespace {

/// Few enough that sums stay in the processor's cache until they are complete, and a multiple of a
/// cache line in any type.
constexpr int64_t kPiece = 4096;
constexpr size_t kWidest = 8;

/// The same numbers of all ranks.
class SharedNumbers {
 public:
  /// This rank's lie at `offset` in its shared memory.
  SharedNumbers(const at::Tensor& numbers, int64_t offset, const Meeting& meeting)
      : meeting_(meeting),
        elements_(numbers.numel()),
        width_(static_cast<int64_t>(numbers.element_size())) {
    offsets_.resize(meeting.comm.size(), 0);
    offsets_[meeting.comm.rank()] = offset;
    meet(offsets_);
  }

  void reduce_own_slice(MPI_Datatype type, MPI_Op operation) const {
    std::array<std::byte, kPiece * kWidest> sum;
    const auto [begin, end] = slice_of(meeting_.comm.rank());
    for (int64_t at = begin; at < end; at += kPiece) {
      const int64_t count = std::min(kPiece, end - at);
      std::memcpy(sum.data(), address(0, at), count * width_);
      for (int rank = 1; rank < meeting_.comm.size(); ++rank)
        mpi(MPI_Reduce_local(address(rank, at), sum.data(), static_cast<int>(count), type,
                             operation));
      std::memcpy(address(meeting_.comm.rank(), at), sum.data(), count * width_);
    }
  }

  void copy_other_slices(std::byte* to) const {
    for (int rank = 0; rank < meeting_.comm.size(); ++rank) {
      const Interval theirs = slice_of(rank);
      if (rank == meeting_.comm.rank() || theirs.empty()) continue;
      std::memcpy(to + theirs.begin * width_, address(rank, theirs.begin),
                  theirs.length() * width_);
    }
  }

  void meet() const {
    std::vector<int64_t> nothing(1);
    meet(nothing);
  }

 private:
  Interval slice_of(int rank) const { return slice(elements_, rank, meeting_.comm.size()); }

  std::byte* address(int rank, int64_t element) const {
    return meeting_.bulletin.memory().address(meeting_.comm.world_rank(rank),
                                              offsets_[rank] + element * width_);
  }

  /// All ranks are here, and the sums of what each brought are everywhere.
  void meet(std::vector<int64_t>& brought) const {
    meeting_.bulletin.all_reduce(std::as_writable_bytes(std::span(brought)),
                                 static_cast<int>(brought.size()), MPI_INT64_T, MPI_SUM,
                                 meeting_.comm, meeting_.reason);
  }

  const Meeting& meeting_;
  int64_t elements_, width_;
  std::vector<int64_t> offsets_;  // of all ranks' numbers, each in its shared memory
};

/// Some of the numbers where other ranks can read them.
at::Tensor shared_copy(const at::Tensor& numbers, const Interval& some, const Meeting& meeting) {
  const std::array<int64_t, 1> shape{some.length()};
  const at::Tensor copy =
      meeting.bulletin.memory().empty(shape, numbers.scalar_type(), c10::MemoryFormat::Contiguous);
  const auto width = static_cast<int64_t>(numbers.element_size());
  std::memcpy(copy.data_ptr(), static_cast<std::byte*>(numbers.data_ptr()) + some.begin * width,
              some.length() * width);
  return copy;
}

}  // namespace

Interval slice(int64_t elements, int rank, int ranks) {
  const Interval pieces = part((elements + kPiece - 1) / kPiece, rank, ranks);
  return {pieces.begin * kPiece, std::min(pieces.end * kPiece, elements)};
}

void reduce_slice(const at::Tensor& numbers, MPI_Datatype type, MPI_Op operation,
                  const Meeting& meeting) {
  const IdleSection section(meeting.comm.context(), &IdleTime::communication);
  const int64_t offset = *meeting.bulletin.memory().offset_of(numbers);
  SharedNumbers(numbers, offset, meeting).reduce_own_slice(type, operation);
}

void gather_slices(const at::Tensor& numbers, const Meeting& meeting) {
  const IdleSection section(meeting.comm.context(), &IdleTime::communication);
  const SharedMemory& memory = meeting.bulletin.memory();
  std::optional<int64_t> offset = memory.offset_of(numbers);
  at::Tensor copy;
  const Interval own = slice(numbers.numel(), meeting.comm.rank(), meeting.comm.size());
  if (!offset && !own.empty()) {
    copy = shared_copy(numbers, own, meeting);
    // As if the numbers before and behind the slice were there too: nobody reads them.
    offset = *memory.offset_of(copy) - own.begin * static_cast<int64_t>(numbers.element_size());
  }
  const SharedNumbers all(numbers, offset.value_or(0), meeting);
  all.copy_other_slices(static_cast<std::byte*>(numbers.data_ptr()));
  all.meet();  // nobody reads these numbers any more
}

void all_reduce_in_slices(const at::Tensor& numbers, MPI_Datatype type, MPI_Op operation,
                          const Meeting& meeting) {
  const IdleSection section(meeting.comm.context(), &IdleTime::communication);
  at::Tensor readable = numbers;
  if (!meeting.bulletin.memory().offset_of(numbers))
    readable = shared_copy(numbers, {0, numbers.numel()}, meeting);
  reduce_slice(readable, type, operation, meeting);
  gather_slices(readable, meeting);
  if (!readable.is_same(numbers))
    std::memcpy(numbers.data_ptr(), readable.data_ptr(), numbers.nbytes());
}

}  // namespace mpi4dl
