#pragma once

#include <functional>
#include <vector>

#include "backend/backend.hpp"

namespace mpi4dl {

/// RematerialisedValue is a value whose readers have it on their tapes, but not its memory: that is
/// freed, and there again once the value is made again.
class RematerialisedValue {
 public:
  /// `make` writes the box `computed` once more. Of the rest, the padding is zero, and what came
  /// from other ranks is kept.
  RematerialisedValue(const Backend& backend, Patch patch, const Box& computed, Box image,
                      std::function<void()> make);
  void rematerialise();

 private:
  const Backend& backend_;
  Patch patch_;
  Box image_;
  std::vector<Box> margins_;
  at::Tensor kept_;  // the margins, one after the other
  std::function<void()> make_;
};

}  // namespace mpi4dl
