#include "backend/cpu/amx.hpp"

#include <algorithm>
#include <atomic>

#include "base/error.hpp"
#include "base/expects.hpp"
#include "base/rounding.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mpi4dl {

using c10::BFloat16;

#ifdef __x86_64__

/// Stands before a function that is compiled for processors with AMX, and runs on no others.
#define AMX_FUNCTION [[gnu::target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")]]

namespace {

constexpr int64_t kColumns = kAmxColumns, kRows = kAmxRows;
constexpr int64_t kPitch = 2 * kColumns;  // of a panel, and of the sums of its pixels
constexpr auto kElement = static_cast<int64_t>(sizeof(BFloat16));

/// Holds the sizes of the eight tile registers: 0 to 3 hold sums, 4 and 5 left matrices, 6 and 7
/// right ones. The fields are the processor's.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

AMX_FUNCTION void load_config(const TileConfig& config) {
  // gcc thinks that the next instruction reads a few bytes only.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  _tile_loadconfig(&config);
}

AMX_FUNCTION void release_tiles() {
  _tile_release();
}

/// Owns the tile registers of this thread, for sums of so many rows over so many products at a
/// time.
class TileRegisters {
 public:
  TileRegisters(int64_t rows, int64_t depth) {
    TileConfig config;
    for (int i = 0; i < 8; ++i) {
      const bool left = i == 4 || i == 5, right = i >= 6;
      config.rows[i] = static_cast<uint8_t>(right ? depth / 2 : rows);
      config.row_bytes[i] = static_cast<uint16_t>(left ? depth * kElement : 64);
    }
    load_config(config);
  }
  ~TileRegisters() { release_tiles(); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

/// Returns the largest even number of channels, at most kAmxDepth, that divides those of every tap.
int64_t depth_of(const PanelProduct& run) {
  for (int64_t depth = kAmxDepth; depth > 2; depth -= 2)
    if (std::all_of(run.taps, run.taps + run.tap_count,
                    [depth](const TapOffset& tap) { return tap.channels % depth == 0; }))
      return depth;
  return 2;
}

/// Sums up one or two times `rows` pixels, from x and from `more`, in as many times kColumns
/// channels.
template <int pixel_tiles, int channel_tiles>
AMX_FUNCTION void sum_taps(const PanelProduct& run, int64_t depth, const BFloat16* x,
                           const BFloat16* more, float* sums) {
  const int64_t x_bytes = run.x_pitch * kElement, panel_bytes = 2 * kPitch * kElement;
  const auto* bias =
      static_cast<const float*>(run.bias);  // the same for every row, which lies 0 bytes further on
  _tile_loadd(0, bias, 0);
  if constexpr (channel_tiles == 2) _tile_loadd(1, bias + kColumns, 0);
  if constexpr (pixel_tiles == 2) _tile_loadd(2, bias, 0);
  if constexpr (pixel_tiles == 2 && channel_tiles == 2) _tile_loadd(3, bias + kColumns, 0);
  for (const TapOffset* tap = run.taps; tap != run.taps + run.tap_count; ++tap)
    for (int64_t channel = 0; channel < tap->channels; channel += depth) {
      const BFloat16* panel =
          static_cast<const BFloat16*>(run.panel) + tap->weight + channel * kPitch;
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

AMX_FUNCTION __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, 16)) - 1);
}

AMX_FUNCTION __m512 widened(__m256i values) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}

/// Stores the sums of one pixel in y.
AMX_FUNCTION void write_pixel(const PanelProduct& run, int64_t pixel, const float* sums) {
  BFloat16* to = static_cast<BFloat16*>(run.y) + pixel * run.y_pitch;
  const auto* residual = static_cast<const BFloat16*>(run.residual);
  if (residual != nullptr) residual += pixel * run.residual_pitch;
  for (int64_t channel = 0; channel < run.y_channels; channel += kColumns) {
    const __mmask16 lanes = first_lanes(run.y_channels - channel);
    __m512 value = _mm512_loadu_ps(sums + channel);
    if (residual != nullptr) value += widened(_mm256_maskz_loadu_epi16(lanes, residual + channel));
    _mm256_mask_storeu_epi16(to + channel, lanes,
                             reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
  }
}

/// Transposes sixteen rows of sixteen 32-bit elements.
AMX_FUNCTION void transpose(__m512i (&rows)[16]) {
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

/// Reads sixteen channels of two neighbours, interleaved. Behind the row's end there are zeros.
AMX_FUNCTION __m512i pair_at(const PixelRow& row, int64_t pixel, int64_t channel) {
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
AMX_FUNCTION void add_outer(const AmxOuterProduct& run, int64_t row, int64_t column) {
  const int64_t x_bytes = run.x_pitch * kElement, g_bytes = run.g_pitch * kElement;
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

void pack_amx(const Matrix<void>& weights, int64_t width, void* to) {
  expects(weights.rows % 2 == 0, "weights have an even number of rows");
  expects(weights.columns > 0 && weights.columns <= width && width == kPitch,
          "a panel has 1 to NR columns");
  pack_row_pairs(weights.as<BFloat16>(), width, static_cast<BFloat16*>(to));
}

void multiply_amx(const PanelProduct& run) {
  expects(run.y_channels > 0 && run.y_channels <= kPitch, "a panel has 1 to NR channels of y");
  expects(run.pixels <= 1 || run.y_pitch >= run.y_channels, "pixels of y do not overlap");
  expects(!kChecked || std::all_of(run.taps, run.taps + run.tap_count,
                                   [](const TapOffset& tap) { return tap.channels % 2 == 0; }),
          "taps read pairs of channels");
  if (run.pixels == 0) return;
  expects(run.bias != nullptr && run.y != nullptr, "bias and y are there");
  const auto* first = static_cast<const BFloat16*>(run.x);
  const int64_t depth = depth_of(run), rows = std::min(run.pixels, kRows);
  const TileRegisters registers(rows, depth);
  const bool wide = run.y_channels > kColumns;
  alignas(64) float sums[2 * kRows * kPitch];
  // The last pixels are computed together with some that are done, so that each tile is full.
  const auto start_of = [&](int64_t pixel) { return std::min(pixel, run.pixels - rows); };
  const auto write = [&](int64_t begin, const float* from) {
    for (int64_t pixel = begin; pixel < std::min(begin + rows, run.pixels); ++pixel)
      write_pixel(run, pixel, from + (pixel - start_of(begin)) * kPitch);
  };
  for (int64_t pixel = 0; pixel < run.pixels; pixel += 2 * rows) {
    const BFloat16* x = first + start_of(pixel) * run.x_pitch;
    const BFloat16* more = first + start_of(pixel + rows) * run.x_pitch;
    const bool two = pixel + rows < run.pixels;
    const auto sum =
        two ? (wide ? sum_taps<2, 2> : sum_taps<2, 1>) : (wide ? sum_taps<1, 2> : sum_taps<1, 1>);
    sum(run, depth, x, more, sums);
    write(pixel, sums);
    if (two) write(pixel + rows, sums + kRows * kPitch);
  }
}

void add_outer_amx(const AmxOuterProduct& run) {
  expects(run.depth > 0 && run.depth <= kAmxDepth && run.depth % 2 == 0,
          "2 to 32 pixels are summed up at once, in pairs");
  expects(run.pixels % run.depth == 0, "a row has whole sums");
  expects(run.rows_of_sums % kRows == 0 && run.columns_of_sums % kColumns == 0,
          "channels are rounded up to whole tile registers");
  expects(run.rows != nullptr && run.sums != nullptr && run.sum_pitch >= run.columns_of_sums,
          "rows and sums are there, and do not overlap");
  const TileRegisters registers(kRows, run.depth);
  for (int64_t row = 0; row < run.rows_of_sums; row += 2 * kRows)
    for (int64_t column = 0; column < run.columns_of_sums; column += 2 * kColumns) {
      const bool two_rows = row + kRows < run.rows_of_sums;
      const bool two_columns = column + kColumns < run.columns_of_sums;
      const auto add = two_rows ? (two_columns ? add_outer<2, 2> : add_outer<2, 1>)
                                : (two_columns ? add_outer<1, 2> : add_outer<1, 1>);
      add(run, row, column);
    }
}

AMX_FUNCTION void write_transposed(const PixelRow& row, BFloat16* to, int64_t to_pitch) {
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

AMX_FUNCTION void write_pairs(const PixelRow& row, BFloat16* to, int64_t to_pitch) {
  for (int64_t pixel = 0; pixel < row.pixels; pixel += 2, to += to_pitch)
    for (int64_t channel = 0; channel < row.channels; channel += 16)
      _mm512_storeu_si512(to + 2 * channel, pair_at(row, pixel, channel));
}

AMX_FUNCTION void add_transposed(const float* from, int64_t rows, int64_t columns, float* to,
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
  throw Error("this processor has no AMX");
}
}  // namespace

void pack_amx(const Matrix<void>&, int64_t, void*) {
  fail();
}
void multiply_amx(const PanelProduct&) {
  fail();
}
void add_outer_amx(const AmxOuterProduct&) {
  fail();
}
void write_transposed(const PixelRow&, BFloat16*, int64_t) {
  fail();
}
void write_pairs(const PixelRow&, BFloat16*, int64_t) {
  fail();
}
void add_transposed(const float*, int64_t, int64_t, float*, int64_t) {
  fail();
}

#endif

}  // namespace mpi4dl
