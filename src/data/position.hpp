#pragma once

#include <cstdint>

namespace mpi4dl {

/// How far training has come through its data.
struct Position {
  int64_t epoch = 1;  ///< counted from 1
  int64_t step = 0;   ///< steps of this epoch that are done

  bool operator==(const Position&) const = default;
};

}  // namespace mpi4dl
