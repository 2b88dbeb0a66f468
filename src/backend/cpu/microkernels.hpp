#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <span>

#include "backend/cpu/panel_packing.hpp"
#include "base/instruction_set.hpp"

// Batch-reduce GEMM microkernels: C = Σᵢ Aᵢ·Bᵢ over a list of taps, as oneDNN's and libxsmm's
// BRGEMM; and as in XNNPACK's IGEMM a tap says where its A begins, so that a convolution needs no
// im2col and no padding. C is a register tile of MR pixels × NR channels that stays in registers
// for all taps and input channels (K); A are pixels where they lie in the image; B are weights,
// packed into panels of NR columns. Bias and residual are added as C is stored.
//
//               K = taps × channels          NR
//            ┌──────────────────────┐      ┌────┐      ┌────┐
//   MR pixels│  A, read in place    │  ·   │ B  │  =   │ C  │ MR × NR sums in registers
//            └──────────────────────┘      │    │      └────┘
//                                          └────┘ a panel
//
// Backward-weights is the same with pixels as K: a register tile of MR channels of dy × NR of x.
//
// Every variant is a row of one of the two tables below; to add one is to add a row. Rows are
// untyped (void*), and say by scalar types what their pointers point to.

namespace mpi4dl {

/// Says where a tap reads, in elements from the first pixel, where its weights are in their panel,
/// and how many channels it reads. Neighbouring taps can be one tap with the channels of all.
struct TapOffset {
  int64_t pixel, weight, channels;
};

/// Holds the arguments of a microkernel for forward and backward-data: a row of pixels times a
/// panel. Weights of a panel lie tap by tap, and for each by input channel, NR in a row. Pitches
/// are in elements.
struct PanelProduct {
  const void* x;    // operands
  int64_t x_pitch;  // from one pixel to the next
  const TapOffset* taps;
  int64_t tap_count;
  const void* panel;     // operands
  const void* bias;      // NR sums, in the precision that sums have
  const void* residual;  // as many stored elements as y, or null
  int64_t residual_pitch;
  void* y;  // stored elements
  int64_t y_pitch;
  int64_t y_channels;  // to write, at most NR
  int64_t pixels;
};

/// Describes a microkernel for forward and backward-data.
struct Microkernel {
  InstructionSet set;       ///< that it needs
  c10::ScalarType stored;   ///< type of residual and y, and of the images that x is read from
  c10::ScalarType operand;  ///< type of x and panel: what is multiplied
  int64_t rows, width;      ///< MR pixels × NR channels of its register tile
  int64_t k_unit;  ///< channels of a tap come in multiples of it: 2 for dot products of pairs
  /// Packs the weights of one tap, K × NR, as `run` reads them.
  void (*pack)(const Matrix<void>& weights, int64_t width, void* to);
  void (*run)(const PanelProduct& product);
};

/// Holds pixels of two images, x_pitch and g_pitch apart.
struct PixelPairs {
  const void *x, *g;
  int64_t pixels;
};

/// Holds the arguments of a microkernel for backward-weights: it adds to `sum`, rows of channels of
/// g and columns of channels of x, the products of all pairs of pixels.
struct OuterProduct {
  const PixelPairs* pairs;
  int64_t pair_count;
  int64_t x_pitch, g_pitch;
  int64_t x_offset;  // of the first channel
  int64_t rows;
  int64_t columns;  // at most NR; NR are read of x
  void* sum;
  int64_t sum_pitch;
};

/// Describes a microkernel for backward-weights.
struct OuterMicrokernel {
  InstructionSet set;       ///< that it needs
  c10::ScalarType operand;  ///< type of x, g and sum
  int64_t rows, width;      ///< MR channels of g × NR channels of x of its register tile
  void (*run)(const OuterProduct& product);
};

/// Returns the tables: all microkernels that this program has, whether or not the processor can run
/// them.
std::span<const Microkernel> microkernels();
std::span<const OuterMicrokernel> outer_microkernels();

/// Chooses a microkernel for images of this type: of those of the largest set, at most `set`, the
/// one whose tile suits so many channels of y, each a sum of `depth` products (K).
const Microkernel& choose_microkernel(c10::ScalarType stored, InstructionSet set, int64_t channels,
                                      int64_t depth);

/// Chooses a microkernel for operands of this type, likewise, for so many channels of x.
const OuterMicrokernel& choose_outer_microkernel(c10::ScalarType operand, InstructionSet set,
                                                 int64_t channels);

}  // namespace mpi4dl
