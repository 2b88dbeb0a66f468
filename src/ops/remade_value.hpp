#pragma once

#include <functional>
#include <vector>

#include "exchange/patch.hpp"

namespace mpi4dl {

/// A value whose readers have it on their tapes, but not its memory: that is freed, and there again
/// once the value is made again. Host memory only.
class RemadeValue {
 public:
  /// `make` writes the box `computed` once more. Of the rest, the padding is zero, and what came
  /// from other ranks is kept.
  RemadeValue(Patch patch, const Box& computed, Box image, std::function<void()> make);
  void make_again();

 private:
  Patch patch_;
  Box image_;
  std::vector<Box> margins_;
  at::Tensor kept_;  // the margins, one after the other
  std::function<void()> make_;
};

}  // namespace mpi4dl
