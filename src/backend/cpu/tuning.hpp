#pragma once

#include <cstdint>

#include "base/memory_units.hpp"

namespace mpi4dl {

/// Holds what the CPU kernels are tuned with. The values were fitted by bench/convolutions.cpp and
/// whole training steps on an EPYC (L1d 32 KiB, L2 1 MiB a core here), an Ice Lake (48 KiB, 1.25
/// MiB) and a Sapphire Rapids (48 KiB, 2 MiB); they are for any L1d of at least 32 KiB and L2 of 1
/// MiB. None of them changes a result but `block_rows`, which decides the order of sums.
struct Tuning {
  // --- Forward and backward-data (tap_products.cpp, microkernels.cpp) ---

  /// Limits the pixels that a thread reads once for each panel of weights: a quarter of L2.
  int64_t cached_bytes = int64_t{256} << 10;

  /// Limits the panel, (taps · input channels) × NR, for which a wider register tile is taken: L2.
  int64_t panel_bytes = int64_t{1} << 20;

  /// Limits the weights that are packed at a time: half of L2, so that pixels fit beside them.
  /// Memory plans count them, hence the constant of base/.
  int64_t packed_bytes = kPackedBytes;

  /// Counts the filters that are packed before the next ones are read, in backward-data, where a
  /// filter is one piece of memory. It is even, for microkernels that take channels in pairs.
  int64_t filters_at_once = 32;

  /// Rows of fewer outputs are computed column by column where columns are longer, as at the left
  /// and right border: as many as MR with AVX-512 and AVX2, so that register tiles are full.
  int64_t short_line = 6;

  /// Groups of at least so many channels, of input and output, are products of their own.
  int64_t group_channels = 32;

  // --- Backward-weights (weight_gradient.cpp) ---

  /// Counts the pixels that one call of the microkernel sums over: enough to make up for adding its
  /// register tile to memory.
  int64_t outer_pixels = 256;

  /// NR channels of those pixels stay in L1.
  int64_t outer_bytes = int64_t{32} << 10;

  /// Pixels that alias in L1 are copied apart where each value is multiplied at least so often.
  int64_t reuse_worth_copying = 256;

  // --- AMX (amx_weight_gradient.cpp) ---

  /// Limits the pixels that are transposed at a time, read once for each tap: less than L2.
  int64_t transposed_bytes = int64_t{768} << 10;

  /// Limits the sums of backward-weights that stay in L2 while pixels pass by.
  int64_t amx_sum_bytes = 2 * kPackedBytes;

  // --- Loops over pixels: batch norm, ReLU, pooling (pixel_tables.hpp, normalisation.cpp) ---

  /// Pixels of fewer channels are taken together, so that vectors are full.
  int64_t lanes = 64;

  /// Counts the rows that are summed in the images' precision before their sum is added to one in
  /// float64.
  int64_t block_rows = 256;

  // --- Copies (strided.cpp) ---

  /// Counts the rows by which memory is asked for before it is copied.
  int64_t rows_ahead = 24;

  /// Pieces of a copy that are at least so large go past the caches: two L1d.
  int64_t streamed_bytes = int64_t{64} << 10;

  // --- Threads ---

  /// Counts the multiplications that are worth another thread.
  int64_t operations_per_thread = int64_t{1} << 20;

  /// Counts the elements of a loop over pixels or parameters that are worth another thread.
  int64_t elements_per_thread = int64_t{32} << 10;
};

inline constexpr Tuning kTuning;

}  // namespace mpi4dl
