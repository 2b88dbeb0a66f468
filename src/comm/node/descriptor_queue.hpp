#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.hpp"

namespace mpi4dl {

class SharedMemory;

/// Slots make up an unbounded single-producer, single-consumer queue from one rank to another of
/// the same node, in memory that they share. They carry descriptors: where in the sender's memory
/// the pixels lie. Both ends number slots in the order in which they are posted. Posting never
/// waits, however far the receiver is behind, and MPI carries nothing but a handshake, the place of
/// the first slot:
///
///     sender's memory:   first --next--> slot --next--> slot
///                                        acknowledged      ^ posted last
///
/// The sender reuses a slot once it and its successor are acknowledged: nobody reads it any more.
struct DescriptorSlot {
  static constexpr int64_t kNone = -1;

  std::atomic<int64_t> next{kNone};  ///< offset of the following slot in the sender's memory
  std::atomic<uint32_t> acknowledged{0};
  int64_t bytes = 0;  ///< size of the payload, which begins in the next cache line

  std::byte* payload();
};

/// Posts descriptors: the sender's end of the queue.
class DescriptorSender {
 public:
  /// The peer makes its DescriptorReceiver with the same tag, which nobody else uses.
  DescriptorSender(const Communicator& comm, int peer, int tag);
  /// Waits until all slots are acknowledged; not while an exception unwinds the stack.
  ~DescriptorSender();
  DescriptorSender(const DescriptorSender&) = delete;
  DescriptorSender& operator=(const DescriptorSender&) = delete;

  /// Posts a slot and returns its number. `keep_alive`, the memory that the descriptor points to,
  /// is kept until the slot is acknowledged.
  int64_t post(std::span<const std::byte> payload, std::shared_ptr<void> keep_alive = nullptr);
  /// Tells whether the peer has acknowledged this slot; never blocks.
  bool acknowledged(int64_t number);

 private:
  struct OwnedSlot {
    std::shared_ptr<std::byte> memory;
    DescriptorSlot* slot;

    bool acknowledged() const { return slot->acknowledged.load(std::memory_order_acquire) != 0; }
  };
  OwnedSlot make_slot(int64_t bytes);
  OwnedSlot free_slot(int64_t bytes);
  void keep(std::shared_ptr<void> memory);
  void recycle();
  bool all_acknowledged();

  Communicator comm_;
  std::shared_ptr<SharedMemory> memory_;
  int peer_;
  std::deque<OwnedSlot> posted_;  // from the slot `first_` on; the last one's next is still to come
  int64_t first_ = -1;            // the slot before all others has number -1
  std::vector<OwnedSlot> unused_;
  Pending handshake_;
};

/// Finds and acknowledges descriptors: the receiver's end of the queue.
class DescriptorReceiver {
 public:
  DescriptorReceiver(const Communicator& comm, int peer, int tag);

  /// Returns the number of the next slot that somebody will wait for.
  int64_t expect() { return expected_++; }
  /// Returns the payload of a slot, or nothing while it is not there; never blocks.
  std::span<std::byte> find(int64_t number);
  /// Tells the sender that this rank is done with the slot and with what it points to.
  void acknowledge(int64_t number);

 private:
  bool connected();
  DescriptorSlot* at(int64_t offset) const;

  Communicator comm_;
  std::shared_ptr<SharedMemory> memory_;
  int peer_;
  std::shared_ptr<int64_t> start_ = std::make_shared<int64_t>(0);
  Pending handshake_;
  DescriptorSlot* last_ = nullptr;  // of the chain, as far as it was followed
  int64_t found_ = 0;               // slots so far
  std::map<int64_t, DescriptorSlot*> unacknowledged_;
  int64_t expected_ = 0;
};

}  // namespace mpi4dl
