#include "ops/kernels/matrix_unit.hpp"

#include <algorithm>
#include <atomic>

#include "base/error.hpp"
#include "base/rounding.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mpi4dl {

using c10::BFloat16;

#ifdef __x86_64__

/// Before a function that is compiled for processors that have the unit, and runs on no others.
#define MATRIX_UNIT [[gnu::target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")]]

namespace {

constexpr int64_t kColumns = kMatrixColumns;
constexpr int64_t kRows = 16;             // of sums, at once
constexpr int64_t kPitch = 2 * kColumns;  // of a panel, and of the sums of its pixels
constexpr auto kNumber = static_cast<int64_t>(sizeof(BFloat16));

/// How the unit's eight registers are cut: 0 to 3 hold sums, 4 and 5 left matrices, 6 and 7 right
/// ones. The fields are the processor's.
struct alignas(64) RegisterSizes {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

MATRIX_UNIT void load_sizes(const RegisterSizes& sizes) {
  // gcc thinks that the next instruction reads a few bytes only.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  _tile_loadconfig(&sizes);
}

MATRIX_UNIT void release_registers() {
  _tile_release();
}

/// The registers of this thread, for sums of so many rows over so many products at a time.
class Registers {
 public:
  Registers(int64_t rows, int64_t depth) {
    RegisterSizes sizes;
    for (int i = 0; i < 8; ++i) {
      const bool left = i == 4 || i == 5, right = i >= 6;
      sizes.rows[i] = static_cast<uint8_t>(right ? depth / 2 : rows);
      sizes.row_bytes[i] = static_cast<uint16_t>(left ? depth * kNumber : 64);
    }
    load_sizes(sizes);
  }
  ~Registers() { release_registers(); }
  Registers(const Registers&) = delete;
  Registers& operator=(const Registers&) = delete;
};

/// The largest even number of channels, at most kMatrixDepth, that divides those of every tap.
int64_t depth_of(const PanelProduct<BFloat16>& run) {
  for (int64_t depth = kMatrixDepth; depth > 2; depth -= 2)
    if (std::all_of(run.taps, run.taps + run.tap_count,
                    [depth](const TapOffset& tap) { return tap.channels % depth == 0; }))
      return depth;
  return 2;
}

/// One or two times `rows` pixels from x and from `more`, and as many times kColumns channels.
template <int pixel_tiles, int channel_tiles>
MATRIX_UNIT void sum_taps(const PanelProduct<BFloat16>& run, int64_t depth, const BFloat16* x,
                          const BFloat16* more, float* sums) {
  const int64_t x_bytes = run.x_pitch * kNumber, panel_bytes = 2 * kPitch * kNumber;
  const float* bias = run.bias;  // the same for every row, which lies 0 bytes further on
  _tile_loadd(0, bias, 0);
  if constexpr (channel_tiles == 2) _tile_loadd(1, bias + kColumns, 0);
  if constexpr (pixel_tiles == 2) _tile_loadd(2, bias, 0);
  if constexpr (pixel_tiles == 2 && channel_tiles == 2) _tile_loadd(3, bias + kColumns, 0);
  for (const TapOffset* tap = run.taps; tap != run.taps + run.tap_count; ++tap)
    for (int64_t channel = 0; channel < tap->channels; channel += depth) {
      const BFloat16* panel = run.panel + tap->weight + channel * kPitch;
      _tile_loadd(4, x + tap->pixel + channel, x_bytes);
      _tile_loadd(6, panel, panel_bytes);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (channel_tiles == 2) {
        _tile_loadd(7, panel + 2 * kColumns, panel_bytes);
        _tile_dpbf16ps(1, 4, 7);
      }
      if constexpr (pixel_tiles == 2) {
        _tile_loadd(5, more + tap->pixel + channel, x_bytes);
        _tile_dpbf16ps(2, 5, 6);
      }
      if constexpr (pixel_tiles == 2 && channel_tiles == 2) _tile_dpbf16ps(3, 5, 7);
    }
  constexpr int64_t sum_bytes = kPitch * static_cast<int64_t>(sizeof(float));
  _tile_stored(0, sums, sum_bytes);
  if constexpr (channel_tiles == 2) _tile_stored(1, sums + kColumns, sum_bytes);
  if constexpr (pixel_tiles == 2) _tile_stored(2, sums + kRows * kPitch, sum_bytes);
  if constexpr (pixel_tiles == 2 && channel_tiles == 2)
    _tile_stored(3, sums + kRows * kPitch + kColumns, sum_bytes);
}

MATRIX_UNIT __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, 16)) - 1);
}

MATRIX_UNIT __m512 widened(__m256i numbers) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

/// The sums of one pixel, to y.
MATRIX_UNIT void write_pixel(const PanelProduct<BFloat16>& run, int64_t pixel, const float* sums) {
  BFloat16* to = run.y + pixel * run.y_pitch;
  const BFloat16* addend = run.addend == nullptr ? nullptr : run.addend + pixel * run.addend_pitch;
  for (int64_t channel = 0; channel < run.y_channels; channel += kColumns) {
    const __mmask16 lanes = first_lanes(run.y_channels - channel);
    __m512 value = _mm512_loadu_ps(sums + channel);
    if (addend != nullptr) value += widened(_mm256_maskz_loadu_epi16(lanes, addend + channel));
    _mm256_mask_storeu_epi16(to + channel, lanes,
                             reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
  }
}

/// Turns rows of sixteen 32-bit numbers into columns.
MATRIX_UNIT void transpose(__m512i (&rows)[16]) {
  __m512i twos[16], fours[16];
  for (int i = 0; i < 16; i += 2) {
    twos[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    twos[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm512_unpacklo_epi64(twos[i + j], twos[i + j + 2]);
      fours[i + 2 * j + 1] = _mm512_unpackhi_epi64(twos[i + j], twos[i + j + 2]);
    }
  // Now fours[4 b + c] has, in quarter q, the rows 4 b to 4 b + 3 of column 4 q + c.
  for (int c = 0; c < 4; ++c) {
    const __m512i low = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0x88);
    const __m512i low_odd = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0xdd);
    const __m512i high = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0x88);
    const __m512i high_odd = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0xdd);
    rows[c] = _mm512_shuffle_i32x4(low, high, 0x88);
    rows[8 + c] = _mm512_shuffle_i32x4(low, high, 0xdd);
    rows[4 + c] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
    rows[12 + c] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
  }
}

/// Sixteen channels of two neighbours, channel by channel. Behind the row's end there are zeros.
MATRIX_UNIT __m512i pair_at(const PixelRow& row, int64_t pixel, int64_t channel) {
  const __mmask16 lanes = first_lanes(row.channels - channel);
  const BFloat16* at = row.data + pixel * row.pitch + channel;
  const __m256i zero = _mm256_setzero_si256();
  const __m256i first = pixel < row.pixels ? _mm256_maskz_loadu_epi16(lanes, at) : zero;
  const __m256i second =
      pixel + 1 < row.pixels ? _mm256_maskz_loadu_epi16(lanes, at + row.pitch) : zero;
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
}

template <int row_tiles, int column_tiles>
MATRIX_UNIT void add_outer(const MatrixOuterProduct& run, int64_t row, int64_t column) {
  const int64_t x_bytes = run.x_pitch * kNumber, g_bytes = run.g_pitch * kNumber;
  const int64_t sum_bytes = run.sum_pitch * static_cast<int64_t>(sizeof(float));
  float* sums = run.sums + row * run.sum_pitch + column;
  float* more = sums + kRows * run.sum_pitch;
  _tile_loadd(0, sums, sum_bytes);
  if constexpr (column_tiles == 2) _tile_loadd(1, sums + kColumns, sum_bytes);
  if constexpr (row_tiles == 2) _tile_loadd(2, more, sum_bytes);
  if constexpr (row_tiles == 2 && column_tiles == 2) _tile_loadd(3, more + kColumns, sum_bytes);
  for (int64_t i = 0; i < run.row_count; ++i) {
    const BFloat16* x = run.rows[i].x + row * run.x_pitch;
    const BFloat16* g = run.rows[i].g + 2 * column;
    for (int64_t pixel = 0; pixel < run.pixels; pixel += run.depth) {
      _tile_loadd(4, x + pixel, x_bytes);
      _tile_loadd(6, g + pixel / 2 * run.g_pitch, g_bytes);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (column_tiles == 2) {
        _tile_loadd(7, g + pixel / 2 * run.g_pitch + 2 * kColumns, g_bytes);
        _tile_dpbf16ps(1, 4, 7);
      }
      if constexpr (row_tiles == 2) {
        _tile_loadd(5, x + kRows * run.x_pitch + pixel, x_bytes);
        _tile_dpbf16ps(2, 5, 6);
      }
      if constexpr (row_tiles == 2 && column_tiles == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums, sum_bytes);
  if constexpr (column_tiles == 2) _tile_stored(1, sums + kColumns, sum_bytes);
  if constexpr (row_tiles == 2) _tile_stored(2, more, sum_bytes);
  if constexpr (row_tiles == 2 && column_tiles == 2) _tile_stored(3, more + kColumns, sum_bytes);
}

}  // namespace

bool has_matrix_unit() {
  static const bool allowed = [] {
    constexpr int kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl(2)
    return __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bf16") &&
           __builtin_cpu_supports("x86-64-v4") &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return allowed;
}

void multiply_by_matrix_unit(const PanelProduct<BFloat16>& run) {
  if (run.pixels == 0) return;
  const int64_t depth = depth_of(run), rows = std::min(run.pixels, kRows);
  const Registers registers(rows, depth);
  const bool wide = run.y_channels > kColumns;
  alignas(64) float sums[2 * kRows * kPitch];
  // The last pixels are computed together with some that are done, so that each tile is full.
  const auto start_of = [&](int64_t pixel) { return std::min(pixel, run.pixels - rows); };
  const auto write = [&](int64_t begin, const float* from) {
    for (int64_t pixel = begin; pixel < std::min(begin + rows, run.pixels); ++pixel)
      write_pixel(run, pixel, from + (pixel - start_of(begin)) * kPitch);
  };
  for (int64_t pixel = 0; pixel < run.pixels; pixel += 2 * rows) {
    const BFloat16* x = run.x + start_of(pixel) * run.x_pitch;
    const BFloat16* more = run.x + start_of(pixel + rows) * run.x_pitch;
    const bool two = pixel + rows < run.pixels;
    const auto sum =
        two ? (wide ? sum_taps<2, 2> : sum_taps<2, 1>) : (wide ? sum_taps<1, 2> : sum_taps<1, 1>);
    sum(run, depth, x, more, sums);
    write(pixel, sums);
    if (two) write(pixel + rows, sums + kRows * kPitch);
  }
}

void add_outer_by_matrix_unit(const MatrixOuterProduct& run) {
  const Registers registers(kRows, run.depth);
  for (int64_t row = 0; row < run.rows_of_sums; row += 2 * kRows)
    for (int64_t column = 0; column < run.columns_of_sums; column += 2 * kColumns) {
      const bool two_rows = row + kRows < run.rows_of_sums;
      const bool two_columns = column + kColumns < run.columns_of_sums;
      const auto add = two_rows ? (two_columns ? add_outer<2, 2> : add_outer<2, 1>)
                                : (two_columns ? add_outer<1, 2> : add_outer<1, 1>);
      add(run, row, column);
    }
}

MATRIX_UNIT void write_by_channel(const PixelRow& row, BFloat16* to, int64_t to_pitch) {
  for (int64_t channel = 0; channel < row.channels; channel += 16)
    for (int64_t pixel = 0; pixel < row.pixels; pixel += 32) {
      __m512i pairs[16];
      for (int64_t i = 0; i < 16; ++i) pairs[i] = pair_at(row, pixel + 2 * i, channel);
      transpose(pairs);
      const int64_t count = std::min<int64_t>(row.pixels - pixel, 32);
      const auto lanes = static_cast<__mmask32>((uint64_t{1} << count) - 1);
      for (int i = 0; i < 16; ++i)
        _mm512_mask_storeu_epi16(to + (channel + i) * to_pitch + pixel, lanes, pairs[i]);
    }
}

MATRIX_UNIT void write_by_pair(const PixelRow& row, BFloat16* to, int64_t to_pitch) {
  for (int64_t pixel = 0; pixel < row.pixels; pixel += 2, to += to_pitch)
    for (int64_t channel = 0; channel < row.channels; channel += 16)
      _mm512_storeu_si512(to + 2 * channel, pair_at(row, pixel, channel));
}

MATRIX_UNIT void add_turned(const float* from, int64_t rows, int64_t columns, float* to,
                            int64_t to_pitch) {
  const int64_t pitch = round_up(columns, kColumns);
  for (int64_t row = 0; row < rows; row += 16)
    for (int64_t column = 0; column < columns; column += 16) {
      __m512i block[16];
      for (int i = 0; i < 16; ++i) block[i] = _mm512_loadu_si512(from + (row + i) * pitch + column);
      transpose(block);
      const __mmask16 lanes = first_lanes(rows - row);
      for (int64_t i = 0; i < std::min<int64_t>(16, columns - column); ++i) {
        float* place = to + (column + i) * to_pitch + row;
        const __m512 sum = _mm512_maskz_loadu_ps(lanes, place) + _mm512_castsi512_ps(block[i]);
        _mm512_mask_storeu_ps(place, lanes, sum);
      }
    }
}

#else

namespace {
[[noreturn]] void fail() {
  throw Error("this processor has no unit for matrices");
}
}  // namespace

bool has_matrix_unit() {
  return false;
}
void multiply_by_matrix_unit(const PanelProduct<BFloat16>&) {
  fail();
}
void add_outer_by_matrix_unit(const MatrixOuterProduct&) {
  fail();
}
void write_by_channel(const PixelRow&, BFloat16*, int64_t) {
  fail();
}
void write_by_pair(const PixelRow&, BFloat16*, int64_t) {
  fail();
}
void add_turned(const float*, int64_t, int64_t, float*, int64_t) {
  fail();
}

#endif

}  // namespace mpi4dl
