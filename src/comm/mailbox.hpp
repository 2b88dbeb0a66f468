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

/// Letters from one rank to another of the same node, through memory that they share. Both ends
/// number them in the order in which they are posted. Posting never waits, however far the reader
/// is behind, and neither end asks MPI for anything but where the first letter will be:
///
///     sender's memory:   first --next--> letter --next--> letter
///                                        taken               ^ posted last
///
/// A letter is used again once it and the one behind it are taken: nobody looks at it any more.
struct Letter {
  static constexpr int64_t kNone = -1;

  std::atomic<int64_t> next{kNone};  ///< where the following one lies in the sender's memory
  std::atomic<uint32_t> taken{0};
  int64_t bytes = 0;  ///< of content, which begins in the next cache line

  std::byte* content();
};

/// The sender's end.
class Outbox {
 public:
  /// The peer makes its Inbox with the same tag, which nobody else uses.
  Outbox(const Communicator& comm, int peer, int tag);
  /// Waits until all letters are taken; not while an exception unwinds the stack.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  /// Sends a letter and returns its number. Where something is enclosed, memory that the letter is
  /// about, it is kept until the letter is taken.
  int64_t post(std::span<const std::byte> content, std::shared_ptr<void> enclosed = nullptr);
  /// Whether the peer is done with this letter; never blocks.
  bool taken(int64_t number);

 private:
  struct Paper {
    std::shared_ptr<std::byte> memory;
    Letter* letter;

    bool taken() const { return letter->taken.load(std::memory_order_acquire) != 0; }
  };
  Paper make_letter(int64_t bytes);
  Paper blank_letter(int64_t bytes);
  void keep(std::shared_ptr<void> enclosed);
  void recycle();
  bool all_taken();

  Communicator comm_;
  std::shared_ptr<SharedMemory> memory_;
  int peer_;
  std::deque<Paper> posted_;   // from the letter `first_` on; the last one's next is still to come
  int64_t first_ = -1;         // the one before all letters has number -1
  std::vector<Paper> unused_;  // letters that are done with
  Pending greeting_;
};

/// The reader's end.
class Inbox {
 public:
  Inbox(const Communicator& comm, int peer, int tag);

  /// The number of the next letter that somebody will wait for.
  int64_t expect() { return expected_++; }
  /// The content of a letter, or nothing while it is not there; never blocks.
  std::span<std::byte> find(int64_t number);
  /// Tells the sender that this rank is done with it.
  void take(int64_t number);

 private:
  bool greeted();
  Letter* at(int64_t offset) const;

  Communicator comm_;
  std::shared_ptr<SharedMemory> memory_;
  int peer_;
  std::shared_ptr<int64_t> start_ = std::make_shared<int64_t>(0);
  Pending greeting_;
  Letter* last_ = nullptr;  // of the chain, as far as it was followed
  int64_t found_ = 0;       // letters so far
  std::map<int64_t, Letter*> untaken_;
  int64_t expected_ = 0;
};

}  // namespace mpi4dl
