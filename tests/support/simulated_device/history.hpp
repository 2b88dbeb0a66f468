#pragma once

#include <string>
#include <vector>

#include "support/simulated_device/clock.hpp"
#include "support/simulated_device/footprint.hpp"

namespace mpi4dl::simulated {

/// Says what is done with bytes. An allocator that reuses memory takes it from what was done with
/// it before.
enum class Access { reads, writes, takes };

/// Records that somebody accessed some bytes.
struct Entry {
  Moment when;
  Access access;
  Footprint bytes;
  std::string name;  // of an operator, a copy or an MPI function
};

/// Records the accesses to one block of memory, as far as a later one could conflict with them.
class History {
 public:
  /// Begins with the block being taken.
  void begin(Entry taking) { entries_ = {std::move(taking)}; }

  /// Returns the last access that conflicts with this one and that is not known to the clock of who
  /// does it; null if there is none.
  const Entry* conflict(Access access, const Footprint& bytes, const Clock& clock) const;

  /// Returns the last access by anybody that is not known to this clock.
  const Entry* unknown_to(const Clock& clock, const std::vector<Agent>& others_known) const;

  /// Adds an access that conflicts with none. What the host knows can be forgotten: whoever does
  /// something later knows it too, because the host tells them to.
  void add(Entry entry, const Clock& host);

  /// A message has ended: what it did is now something that the host did.
  void ended(int64_t message, const Moment& host);

 private:
  std::vector<Entry> entries_;
};

}  // namespace mpi4dl::simulated
