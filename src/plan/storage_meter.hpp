#pragma once

#include <algorithm>
#include <cstdint>

#include "base/memory_units.hpp"

namespace mpi4dl {

/// Counts bytes alive now and at the worst moment.
struct Meter {
  int64_t live = 0;
  int64_t peak = 0;

  void add(int64_t bytes) { peak = std::max(peak, live += bytes); }
};

/// Counts all together, and each allocator's share in whole blocks.
struct Meters {
  Meter all, ordinary, shared;
};

/// Storage is a piece of memory, freed with its last reference, as a tensor's storage is.
class Storage {
 public:
  Storage(Meter& all, Meter& allocator, int64_t bytes)
      : all_(all), allocator_(allocator), bytes_(bytes) {
    all_.add(bytes_);
    allocator_.add(block_bytes(bytes_));
  }
  ~Storage() {
    all_.add(-bytes_);
    allocator_.add(-block_bytes(bytes_));
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

 private:
  Meter &all_, &allocator_;
  int64_t bytes_;
};

}  // namespace mpi4dl
