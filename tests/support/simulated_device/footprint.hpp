#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "support/simulated_device/addresses.hpp"

namespace mpi4dl::simulated {

/// Holds the bytes that a strided tensor occupies, exactly: runs of the same length, some steps
/// apart.
class Footprint {
 public:
  /// Is one run.
  Footprint(Address begin, int64_t bytes) : begin_(begin), end_(begin + bytes), run_(bytes) {}
  /// Is what a tensor that is not empty occupies, whose first element is at `begin`.
  Footprint(Address begin, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t element);

  Address begin() const { return begin_; }
  Address end() const { return end_; }

  bool overlaps(const Footprint& other) const;
  /// Returns whether all bytes of the other are among these; may say no where it is too hard to
  /// tell.
  bool covers(const Footprint& other) const;

 private:
  struct Axis {
    int64_t count, step;
    bool operator==(const Axis&) const = default;
  };

  int64_t runs() const;
  bool overlaps_run(Address begin, Address end, size_t axis, Address here) const;
  bool any_run_overlaps(const Footprint& other, size_t axis, Address here) const;

  Address begin_, end_;     // the hull
  int64_t run_;             // bytes of each run
  std::vector<Axis> axes_;  // of the runs, the longest step first
};

}  // namespace mpi4dl::simulated
