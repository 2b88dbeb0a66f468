#include "support/simulated_device/history.hpp"

#include <algorithm>

namespace mpi4dl::simulated {

const Entry* History::conflict(Access access, const Footprint& bytes, const Clock& clock) const {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    if ((access != Access::reads || entry->access != Access::reads) && !clock.knows(entry->when) &&
        entry->bytes.overlaps(bytes))
      return &*entry;
  return nullptr;
}

const Entry* History::unknown_to(const Clock& clock, const std::vector<Agent>& others_known) const {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    if (!clock.knows(entry->when) &&
        std::ranges::find(others_known, entry->when.agent) == others_known.end())
      return &*entry;
  return nullptr;
}

void History::add(Entry entry, const Clock& host) {
  std::erase_if(entries_, [&](const Entry& old) {
    if (old.when.agent == kMessage) return false;
    if (host.knows(old.when)) return true;
    // Who comes after a write comes after all that was before it; reads on one stream follow each
    // other.
    const bool follows = entry.access == Access::writes ||
                         (old.access == Access::reads && old.when.agent == entry.when.agent);
    return follows && entry.bytes.covers(old.bytes);
  });
  entries_.push_back(std::move(entry));
}

void History::ended(int64_t message, const Moment& host) {
  for (Entry& entry : entries_)
    if (entry.when.agent == kMessage && entry.when.tick == message) entry.when = host;
}

}  // namespace mpi4dl::simulated
