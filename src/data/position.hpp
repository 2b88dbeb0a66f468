#pragma once

#include <cstdint>
#include <vector>

namespace mpi4dl {

/// Says how far training has come through its data.
struct Position {
  int64_t epoch = 1;  ///< counted from 1
  int64_t step = 0;   ///< steps of this epoch that are done

  bool operator==(const Position&) const = default;
};

/// Holds what a run must know of its data to resume.
struct DataState {
  Position position;
  std::vector<int64_t> left_out = {};  ///< samples that turned out to be bad, sorted
};

}  // namespace mpi4dl
