#pragma once

#include <cstdint>

#include "ops/kernels/panel_packing.hpp"
#include "ops/kernels/vectorised.hpp"

namespace mpi4dl {

/// Where a tap reads, in elements from the first pixel, where its weights are in their panel, and
/// how many channels it reads. Taps side by side are one tap with the channels of all.
struct TapOffset {
  int64_t pixel, weight, channels;
};

/// A row of pixels times a panel of weights. Weights of a panel are those of `width` channels, and
/// lie tap by tap, and for each by channels of the input. Results may be stored as other numbers
/// than those that are computed with.
template <typename T, typename Stored = T>
struct PanelProduct {
  const T* x;
  int64_t x_pitch;  // from one pixel to the next
  const TapOffset* taps;
  int64_t tap_count;
  const T* panel;
  const Wide<T>* bias;   // `width` numbers
  const Stored* addend;  // as many as y, or null
  int64_t addend_pitch;
  Stored* y;
  int64_t y_pitch;
  int64_t y_channels;  // to write, at most `width`
  int64_t pixels;
};

/// Pixels of two images that lie side by side, x_pitch and g_pitch apart.
template <typename T>
struct PixelPairs {
  const T *x, *g;
  int64_t pixels;
};

/// Adds to `sum`, rows of channels of g and columns of channels of x, the products of all pairs.
template <typename T>
struct OuterProduct {
  const PixelPairs<T>* pairs;
  int64_t pair_count;
  int64_t x_pitch, g_pitch;
  int64_t x_offset, g_offset;  // of the first channel
  int64_t rows;
  int64_t columns;  // at most `width`; more of x can be read
  T* sum;
  int64_t sum_pitch;
};

// Products whose sums stay in registers, for the processor that this program runs on, and for this
// many channels: few of them need narrow tiles. `depth` numbers are multiplied for each sum.

template <typename T, typename Stored = T>
struct PanelTiles {
  int64_t width;  ///< channels that are computed at once
  void (*multiply)(const PanelProduct<T, Stored>&);
  /// Writes the weights of one tap as `multiply` reads them, `width` for each row.
  void (*pack)(const Matrix<T>& weights, int64_t width, T* to);
};

/// Exists for float and double, for float stored as bfloat16, and for bfloat16 where there is a
/// matrix unit.
template <typename T, typename Stored = T>
const PanelTiles<T, Stored>& panel_tiles(int64_t channels, int64_t depth);

template <typename T>
struct OuterTiles {
  int64_t width;  ///< channels that are computed at once
  void (*add)(const OuterProduct<T>&);
};

/// Exists for float and double.
template <typename T>
const OuterTiles<T>& outer_tiles(int64_t channels);

}  // namespace mpi4dl
