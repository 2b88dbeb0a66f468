#pragma once

#include <cstdint>
#include <string>

namespace mpi4dl {

/// Says how often something happens in a run.
struct Every {
  enum class Unit { steps, epochs };
  int64_t count = 0;  ///< 0: never
  Unit unit = Unit::epochs;

  /// Returns whether it happens after this step of an epoch of `steps`; both count from 1. Steps
  /// are counted over all epochs.
  bool due(int64_t epoch, int64_t step, int64_t steps) const;
};

/// Reads "2" and "2epochs", or "500steps"; "" is never. Throws UsageError that names the flag.
Every parse_every(const std::string& flag, const std::string& text);

}  // namespace mpi4dl
