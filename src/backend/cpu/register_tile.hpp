#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "backend/cpu/microkernels.hpp"
#include "backend/cpu/vectorised.hpp"
#include "base/expects.hpp"
#include "base/rounding.hpp"

// The batch-reduce GEMM microkernels of microkernels.hpp for any vector instructions, written with
// gcc's vector types: a register tile of MR × NR sums, for each k one row of B in vectors times MR
// values of A, each broadcast. They are instantiated in microkernels.cpp alone; everything here is
// always_inline, because it is compiled for the instruction set of whoever calls it.

namespace mpi4dl {

/// Holds the MR × NR sums that stay in registers next to the vectors that they are made of: `rows`
/// times `vectors` of `bytes`.
template <typename T, int bytes_, int vectors_>
struct RegisterTile {
  using Element = T;
  static constexpr int bytes = bytes_, vectors = vectors_;
  static constexpr int lanes = bytes / static_cast<int>(sizeof(T));
  static constexpr int width = lanes * vectors;  // NR
  static constexpr int registers = bytes == 64 ? 32 : 16;
  static constexpr int rows = std::min(12, registers * 3 / 4 / vectors);  // MR
  /// Says whether registers are left for the weights of three taps and for one value of a pixel.
  static constexpr bool takes_three_taps = (rows + 3) * vectors < registers;
  typedef T Vector __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));
};

/// Stores the first sums of a pixel.
template <typename T, typename Stored>
[[gnu::always_inline]] inline void store(const T* sums, const Stored* residual, int64_t channels,
                                         Stored* to) {
  for (int64_t channel = 0; channel < channels; ++channel)
    to[channel] =
        narrow_to<Stored>(sums[channel] + (residual == nullptr ? T{0} : widen(residual[channel])));
}

/// Adds the products of some channels of pixels that lie `pitch` apart.
template <typename Tile, typename T, int rows, int vectors>
[[gnu::always_inline]] inline void add_channels(const T* x, const T* weights, int64_t pitch,
                                                int64_t channels,
                                                typename Tile::Vector (&sums)[rows][vectors]) {
#pragma GCC unroll 4
  for (int64_t channel = 0; channel < channels; ++channel) {
    typename Tile::Vector weight[vectors];
    for (int v = 0; v < vectors; ++v)
      weight[v] =
          reinterpret_cast<const typename Tile::Vector*>(weights + channel * Tile::width)[v];
#pragma GCC unroll 12
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[row][v] += x[row * pitch + channel] * weight[v];
  }
}

/// Adds the products of three times as many channels as lie between two pixels: those of this
/// pixel, of its neighbour and of the next one, for three neighbouring taps. Each value is read
/// once for the three pixels that it is a neighbour of.
template <typename Tile, typename T, int rows, int vectors>
[[gnu::always_inline]] inline void add_neighbours(const T* x, const T* weights, int64_t pitch,
                                                  typename Tile::Vector (&sums)[rows][vectors]) {
  using Vector = typename Tile::Vector;
  constexpr int half = (rows + 2) / 2;  // fewer distances to remember
  const T* others = x + half * pitch;
  const T* second = weights + pitch * Tile::width;
  const T* third = second + pitch * Tile::width;
  for (int64_t channel = 0; channel < pitch; ++channel) {
    Vector weight[3][vectors];
    for (int v = 0; v < vectors; ++v) {
      weight[0][v] = reinterpret_cast<const Vector*>(weights)[v];
      weight[1][v] = reinterpret_cast<const Vector*>(second)[v];
      weight[2][v] = reinterpret_cast<const Vector*>(third)[v];
    }
#pragma GCC unroll 14
    for (int pixel = 0; pixel < rows + 2; ++pixel) {
      const T value = pixel < half ? x[pixel * pitch] : others[(pixel - half) * pitch];
#pragma GCC unroll 3
      for (int tap = 0; tap < 3; ++tap)
        if (pixel >= tap && pixel - tap < rows)
#pragma GCC unroll 2
          for (int v = 0; v < vectors; ++v) sums[pixel - tap][v] += value * weight[tap][v];
    }
    ++x, ++others;
    weights += Tile::width, second += Tile::width, third += Tile::width;
  }
}

/// Cuts [0, length) into as few pieces as possible, of at most `longest` and nearly equal lengths:
/// a short one would read as many weights for fewer products. Calls `work` with a length, as a
/// constant, and where pieces of that length begin and end.
template <int longest, typename Work>
[[gnu::always_inline]] inline void cut_evenly(int64_t length, const Work& work) {
  if (length == 0) return;
  const int64_t pieces = divide_up(length, longest), shorter = length / pieces;
  const int64_t middle = length % pieces * (shorter + 1);
  for (const bool first : {true, false}) {
    const int64_t piece = first ? shorter + 1 : shorter;
    const int64_t begin = first ? 0 : middle, end = first ? middle : length;
    [&]<int... less>(std::integer_sequence<int, less...>) __attribute__((always_inline)) {
      (void)((piece == longest - less &&
              (work(std::integral_constant<int, longest - less>{}, begin, end), true)) ||
             ...);
    }(std::make_integer_sequence<int, longest>());
  }
}

template <typename T>
bool aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % alignof(T) == 0;
}

/// MultiplyTaps implements Microkernel::run.
template <typename Tile, typename Stored>
struct MultiplyTaps {
  using T = typename Tile::Element;
  using Vector = typename Tile::Vector;

  [[gnu::always_inline]] static void run(const PanelProduct& product) {
    expects(product.pixels >= 0 && product.tap_count >= 0 && product.x_pitch >= 0,
            "there are pixels and taps, and pixels follow each other");
    expects(product.y_channels > 0 && product.y_channels <= Tile::width,
            "a panel has 1 to NR channels of y");
    expects(product.pixels <= 1 || product.y_pitch >= product.y_channels,
            "pixels of y do not overlap");
    expects(product.pixels == 0 || (product.bias != nullptr && product.y != nullptr),
            "bias and y are there");
    expects(product.tap_count == 0 || (product.taps != nullptr && product.panel != nullptr),
            "taps have weights");
    expects(aligned<T>(product.x) && aligned<T>(product.panel) && aligned<T>(product.bias) &&
                aligned<Stored>(product.residual) && aligned<Stored>(product.y),
            "pointers are aligned to elements");
    cut_evenly<Tile::rows>(
        product.pixels, [&](auto rows, int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t pixel = begin; pixel < end; pixel += rows)
            multiply_rows<decltype(rows)::value>(product, pixel);
        });
  }

 private:
  template <int rows>
  [[gnu::always_inline]] static void multiply_rows(const PanelProduct& product, int64_t pixel) {
    const T* x = static_cast<const T*>(product.x) + pixel * product.x_pitch;
    Vector sums[rows][Tile::vectors];
    for (int row = 0; row < rows; ++row)
      for (int v = 0; v < Tile::vectors; ++v)
        sums[row][v] = static_cast<const Vector*>(product.bias)[v];
    for (int64_t tap = 0; tap < product.tap_count; ++tap) {
      const T* values = x + product.taps[tap].pixel;
      const T* weights = static_cast<const T*>(product.panel) + product.taps[tap].weight;
      int64_t channels = product.taps[tap].channels;
      if constexpr (Tile::takes_three_taps)
        while (product.x_pitch > 0 && channels >= 3 * product.x_pitch) {
          add_neighbours<Tile>(values, weights, product.x_pitch, sums);
          values += 3 * product.x_pitch;
          weights += 3 * product.x_pitch * Tile::width;
          channels -= 3 * product.x_pitch;
        }
      add_channels<Tile>(values, weights, product.x_pitch, channels, sums);
    }
    store_rows<rows>(product, pixel, sums);
  }

  template <int rows>
  [[gnu::always_inline]] static void store_rows(const PanelProduct& product, int64_t pixel,
                                                const Vector (&sums)[rows][Tile::vectors]) {
    const auto* residual = static_cast<const Stored*>(product.residual);
    if (residual != nullptr) residual += pixel * product.residual_pitch;
    Stored* y = static_cast<Stored*>(product.y) + pixel * product.y_pitch;
    for (int row = 0; row < rows; ++row) {
      Stored* to = y + row * product.y_pitch;
      const Stored* more = residual == nullptr ? nullptr : residual + row * product.residual_pitch;
      const T* values = reinterpret_cast<const T*>(sums[row]);
      if (product.y_channels < Tile::width) {
        store(values, more, product.y_channels, to);
      } else if constexpr (std::is_same_v<T, Stored>) {
        for (int v = 0; v < Tile::vectors; ++v)
          reinterpret_cast<Vector*>(to)[v] =
              more == nullptr ? sums[row][v]
                              : sums[row][v] + reinterpret_cast<const Vector*>(more)[v];
      } else {
        store(values, more, Tile::width, to);
      }
    }
  }
};

/// PackPanel implements Microkernel::pack.
template <typename Tile>
struct PackPanel {
  [[gnu::always_inline]] static void run(const Matrix<void>& weights, int64_t width, void* to) {
    using T = typename Tile::Element;
    expects(weights.rows >= 0 && weights.columns > 0 && weights.columns <= width,
            "a panel has 1 to NR columns");
    expects(aligned<T>(weights.data) && aligned<T>(to), "pointers are aligned to elements");
    expects(weights.rows == 0 || (weights.data != nullptr && to != nullptr), "weights are there");
    pack_rows<T, Tile::bytes>(weights.as<T>(), width, static_cast<T*>(to));
  }
};

/// AddOuterProduct implements OuterMicrokernel::run.
template <typename Tile>
struct AddOuterProduct {
  using T = typename Tile::Element;
  using Vector = typename Tile::Vector;

  [[gnu::always_inline]] static void run(const OuterProduct& product) {
    expects(product.rows >= 0 && product.pair_count >= 0, "there are rows and pairs");
    expects(product.columns > 0 && product.columns <= Tile::width, "a tile has 1 to NR columns");
    expects(product.pair_count == 0 || product.pairs != nullptr, "pairs are there");
    expects(product.rows <= 1 || product.sum_pitch >= product.columns, "sums do not overlap");
    expects(product.sum != nullptr && aligned<T>(product.sum), "sums are there and aligned");
    cut_evenly<Tile::rows>(
        product.rows, [&](auto rows, int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t first = begin; first < end; first += rows)
            add_rows<decltype(rows)::value>(product, first);
        });
  }

 private:
  template <int rows>
  [[gnu::always_inline]] static void add_rows(const OuterProduct& product, int64_t first) {
    Vector sums[rows][Tile::vectors] = {};
    const int64_t x_pitch = product.x_pitch, g_pitch = product.g_pitch;
    for (int64_t pair = 0; pair < product.pair_count; ++pair) {
      const T* x = static_cast<const T*>(product.pairs[pair].x) + product.x_offset;
      const T* g = static_cast<const T*>(product.pairs[pair].g) + first;
#pragma GCC unroll 4
      for (int64_t left = product.pairs[pair].pixels; left > 0; --left) {
        Vector values[Tile::vectors];
        for (int v = 0; v < Tile::vectors; ++v) values[v] = reinterpret_cast<const Vector*>(x)[v];
#pragma GCC unroll 12
        for (int row = 0; row < rows; ++row)
#pragma GCC unroll 4
          for (int v = 0; v < Tile::vectors; ++v) sums[row][v] += g[row] * values[v];
        x += x_pitch;
        g += g_pitch;
      }
    }
    for (int row = 0; row < rows; ++row) {
      T* to = static_cast<T*>(product.sum) + (first + row) * product.sum_pitch;
      if (product.columns == Tile::width) {
        for (int v = 0; v < Tile::vectors; ++v) reinterpret_cast<Vector*>(to)[v] += sums[row][v];
      } else {
        const T* values = reinterpret_cast<const T*>(sums[row]);
        for (int64_t column = 0; column < product.columns; ++column) to[column] += values[column];
      }
    }
  }
};

}  // namespace mpi4dl
