#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

#include "backend/cpu/microkernels.hpp"

// The microkernels for AMX, the unit of x86-64 that multiplies small matrices of bfloat16 in one
// instruction, 16×32 by 32×16, and adds the products to sums in float32. They are batch-reduce
// GEMMs like those of register_tile.hpp, with tile registers as register tiles: 2 × 2 of them are
// C, 32 pixels × 32 channels. The unit reads its left matrix row by row from wherever the rows lie,
// so pixels need not be moved; the right one has two rows interleaved, element by element (VNNI
// layout). No function here may be called where instruction_set() is less than amx.

namespace mpi4dl {

/// Counts the rows and columns of sums in a tile register. Channels are rounded up to kAmxColumns
/// for it.
inline constexpr int64_t kAmxRows = 16, kAmxColumns = 16;

/// One instruction sums up so many products (K).
inline constexpr int64_t kAmxDepth = 32;

/// Does what Microkernel::pack does, with pairs of rows.
void pack_amx(const Matrix<void>& weights, int64_t width, void* to);

/// Does what Microkernel::run does; taps read even numbers of channels.
void multiply_amx(const PanelProduct& product);

/// AmxPixelRow is a row of pixels of two images, as backward-weights reads them: of x all pixels of
/// a channel, then those of the next; of g pairs of pixels, in each pair channel by channel.
struct AmxPixelRow {
  const c10::BFloat16 *x, *g;
};

/// Holds the arguments of the microkernel for backward-weights: it adds to `sums`, rows of channels
/// of x and columns of channels of g, the products of all pixels.
struct AmxOuterProduct {
  const AmxPixelRow* rows;
  int64_t row_count;
  int64_t depth;             // pixels that are summed up at once: even, at most kAmxDepth
  int64_t pixels;            // of a row: a multiple of that
  int64_t x_pitch, g_pitch;  // from channel to channel, from pair to pair
  int64_t rows_of_sums, columns_of_sums;  // multiples of kAmxColumns
  float* sums;
  int64_t sum_pitch;
};
void add_outer_amx(const AmxOuterProduct& product);

/// PixelRow is a row of pixels that lie `pitch` apart.
struct PixelRow {
  const c10::BFloat16* data;
  int64_t pitch, pixels, channels;
};

/// Writes pixels transposed, channels `to_pitch` apart. They are rounded up to kAmxColumns, and
/// what is missing becomes zero.
void write_transposed(const PixelRow& row, c10::BFloat16* to, int64_t to_pitch);

/// Writes pairs of pixels, interleaved channel by channel, pairs `to_pitch` apart; likewise.
void write_pairs(const PixelRow& row, c10::BFloat16* to, int64_t to_pitch);

/// Adds element (row, column) of a matrix, whose columns are rounded up to kAmxColumns and whose
/// rows likewise, to `to[column * to_pitch + row]`.
void add_transposed(const float* from, int64_t rows, int64_t columns, float* to, int64_t to_pitch);

}  // namespace mpi4dl
