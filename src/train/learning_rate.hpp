#pragma once

#include <cstdint>

namespace mpi4dl {

/// Says which learning rate each optimizer step has.
struct LearningRate {
  enum class Kind {
    constant,
    step,    ///< times `factor` every `every` steps
    cosine,  ///< half a cosine from `base` down to 0 at `total` steps
  };
  double base = 0.001;
  Kind kind = Kind::constant;
  int64_t warmup = 0;  ///< steps in which it rises linearly from base / warmup; the rest follows
  int64_t every = 1;
  double factor = 0.1;
  int64_t total = 1;

  /// Returns the rate of a step; `step` counts from 0.
  double at(int64_t step) const;
};

}  // namespace mpi4dl
