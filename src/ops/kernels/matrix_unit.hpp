#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

#include "ops/kernels/register_tiles.hpp"

namespace mpi4dl {

// Some processors have a unit that multiplies small matrices of bfloat16 in one instruction, 16×32
// by 32×16, and adds the products to sums in float32 (AMX of x86-64). It reads its left matrix row
// by row from wherever the rows lie, so pixels need not be moved; the right one has two rows side
// by side, number by number.

/// True where the processor has such a unit and the system lets this process use it.
bool has_matrix_unit();

/// Columns of sums that the unit computes at once, and what channels are rounded up to for it.
inline constexpr int64_t kMatrixColumns = 16;

/// The most numbers that one instruction sums up.
inline constexpr int64_t kMatrixDepth = 32;

/// Pixels times a panel of 32 columns, whose rows lie in pairs. Taps read even numbers of channels.
void multiply_by_matrix_unit(const PanelProduct<c10::BFloat16>& run);

/// A row of pixels of two images: of x all pixels channel by channel, of g pairs of pixels, in each
/// pair channel by channel.
struct PixelMatrices {
  const c10::BFloat16 *x, *g;
};

/// Adds to `sums`, rows of channels of x and columns of channels of g, the products of all pixels.
struct MatrixOuterProduct {
  const PixelMatrices* rows;
  int64_t row_count;
  int64_t depth;             // pixels that are summed up at once: even, at most kMatrixDepth
  int64_t pixels;            // of a row: a multiple of that
  int64_t x_pitch, g_pitch;  // from channel to channel, from pair to pair
  int64_t rows_of_sums, columns_of_sums;  // multiples of kMatrixColumns
  float* sums;
  int64_t sum_pitch;
};
void add_outer_by_matrix_unit(const MatrixOuterProduct& run);

/// Pixels that lie `pitch` apart.
struct PixelRow {
  const c10::BFloat16* data;
  int64_t pitch, pixels, channels;
};

/// Writes pixels channel by channel, channels `to_pitch` apart. They are rounded up to
/// kMatrixColumns, and what is missing becomes zero.
void write_by_channel(const PixelRow& row, c10::BFloat16* to, int64_t to_pitch);

/// Writes pairs of pixels, side by side in each channel, pairs `to_pitch` apart; likewise.
void write_by_pair(const PixelRow& row, c10::BFloat16* to, int64_t to_pitch);

/// Adds number (row, column) of a matrix, whose columns are rounded up to kMatrixColumns and whose
/// rows likewise, to `to[column * to_pitch + row]`.
void add_turned(const float* from, int64_t rows, int64_t columns, float* to, int64_t to_pitch);

}  // namespace mpi4dl
