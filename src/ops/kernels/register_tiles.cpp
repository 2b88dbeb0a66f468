#include "ops/kernels/register_tiles.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "ops/kernels/matrix_unit.hpp"

namespace mpi4dl {
namespace {

/// As many registers as `vectors` of `bytes` take hold the sums of `rows` pixels or channels: with
/// the vectors themselves and one broadcast number they fill, but do not exceed, those there are.
template <typename T, int bytes_, int vectors_>
struct TileShape {
  static constexpr int bytes = bytes_, vectors = vectors_;
  static constexpr int lanes = bytes / static_cast<int>(sizeof(T));
  static constexpr int width = lanes * vectors;
  static constexpr int rows = bytes == 64 || vectors == 1 ? 12 : 6;
  typedef T Vector __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));
};

template <typename S, typename T, int rows>
[[gnu::always_inline]] inline void multiply_rows(const PanelProduct<T>& run, int64_t pixel) {
  const T* x = run.x + pixel * run.x_pitch;
  const T* addend = run.addend == nullptr ? nullptr : run.addend + pixel * run.addend_pitch;
  T* y = run.y + pixel * run.y_pitch;
  using Vector = typename S::Vector;
  Vector sums[rows][S::vectors];
  for (int row = 0; row < rows; ++row)
    for (int v = 0; v < S::vectors; ++v)
      sums[row][v] = reinterpret_cast<const Vector*>(run.bias)[v];
  const int64_t pitch = run.x_pitch;
  for (int64_t tap = 0; tap < run.tap_count; ++tap) {
    const T* numbers = x + run.taps[tap].pixel;
    const T* weights = run.panel + run.taps[tap].weight;
    const int64_t channels = run.taps[tap].channels;
    for (int64_t channel = 0; channel < channels; ++channel) {
      Vector weight[S::vectors];
      for (int v = 0; v < S::vectors; ++v)
        weight[v] = reinterpret_cast<const Vector*>(weights + channel * S::width)[v];
#pragma GCC unroll 12
      for (int row = 0; row < rows; ++row)
#pragma GCC unroll 2
        for (int v = 0; v < S::vectors; ++v)
          sums[row][v] += numbers[row * pitch + channel] * weight[v];
    }
  }
  for (int row = 0; row < rows; ++row) {
    T* to = y + row * run.y_pitch;
    const T* more = addend == nullptr ? nullptr : addend + row * run.addend_pitch;
    if (run.y_channels == S::width) {
      for (int v = 0; v < S::vectors; ++v)
        reinterpret_cast<Vector*>(to)[v] =
            more == nullptr ? sums[row][v]
                            : sums[row][v] + reinterpret_cast<const Vector*>(more)[v];
    } else {
      const T* numbers = reinterpret_cast<const T*>(sums[row]);
      for (int64_t channel = 0; channel < run.y_channels; ++channel)
        to[channel] = numbers[channel] + (more == nullptr ? T{0} : more[channel]);
    }
  }
}

template <typename S, typename T, int rows>
[[gnu::always_inline]] inline void add_outer_rows(const OuterProduct<T>& run, int64_t first) {
  using Vector = typename S::Vector;
  Vector sums[rows][S::vectors] = {};
  const int64_t x_pitch = run.x_pitch, g_pitch = run.g_pitch;
  for (int64_t pair = 0; pair < run.pair_count; ++pair) {
    const T* x = run.pairs[pair].x + run.x_offset;
    const T* g = run.pairs[pair].g + run.g_offset + first;
    for (int64_t left = run.pairs[pair].pixels; left > 0; --left) {
      Vector numbers[S::vectors];
      for (int v = 0; v < S::vectors; ++v) numbers[v] = reinterpret_cast<const Vector*>(x)[v];
#pragma GCC unroll 12
      for (int row = 0; row < rows; ++row)
#pragma GCC unroll 2
        for (int v = 0; v < S::vectors; ++v) sums[row][v] += g[row] * numbers[v];
      x += x_pitch;
      g += g_pitch;
    }
  }
  for (int row = 0; row < rows; ++row) {
    T* to = run.sum + (first + row) * run.sum_pitch;
    if (run.columns == S::width) {
      for (int v = 0; v < S::vectors; ++v) reinterpret_cast<Vector*>(to)[v] += sums[row][v];
    } else {
      const T* numbers = reinterpret_cast<const T*>(sums[row]);
      for (int64_t column = 0; column < run.columns; ++column) to[column] += numbers[column];
    }
  }
}

template <typename S, typename T>
[[gnu::always_inline]] inline void multiply_all(const PanelProduct<T>& run) {
  int64_t pixel = 0;
  for (; pixel + S::rows <= run.pixels; pixel += S::rows) multiply_rows<S, T, S::rows>(run, pixel);
  const int64_t rest = run.pixels - pixel;
  [&]<int... rows>(std::integer_sequence<int, rows...>) __attribute__((always_inline)) {
    (void)((rest == rows + 1 && (multiply_rows<S, T, rows + 1>(run, pixel), true)) || ...);
  }(std::make_integer_sequence<int, S::rows - 1>());
}

template <typename S, typename T>
[[gnu::always_inline]] inline void add_outer_all(const OuterProduct<T>& run) {
  int64_t first = 0;
  for (; first + S::rows <= run.rows; first += S::rows) add_outer_rows<S, T, S::rows>(run, first);
  const int64_t rest = run.rows - first;
  [&]<int... rows>(std::integer_sequence<int, rows...>) __attribute__((always_inline)) {
    (void)((rest == rows + 1 && (add_outer_rows<S, T, rows + 1>(run, first), true)) || ...);
  }(std::make_integer_sequence<int, S::rows - 1>());
}

// One function for each generation of processors; what it calls is compiled for it too.
template <typename S, typename T>
void multiply(const PanelProduct<T>& run) {
  multiply_all<S>(run);
}
template <typename S, typename T>
void add_outer(const OuterProduct<T>& run) {
  add_outer_all<S>(run);
}
template <typename S, typename T>
void pack(const Matrix<T>& weights, int64_t width, T* to) {
  pack_rows<T, S::bytes>(weights, width, to);
}
#ifdef __x86_64__
template <typename S, typename T>
[[gnu::target("arch=x86-64-v3")]] void multiply_v3(const PanelProduct<T>& run) {
  multiply_all<S>(run);
}
template <typename S, typename T>
[[gnu::target("arch=x86-64-v3")]] void add_outer_v3(const OuterProduct<T>& run) {
  add_outer_all<S>(run);
}
template <typename S, typename T>
[[gnu::target("arch=x86-64-v3")]] void pack_v3(const Matrix<T>& weights, int64_t width, T* to) {
  pack_rows<T, S::bytes>(weights, width, to);
}
template <typename S, typename T>
[[gnu::target("arch=x86-64-v4")]] void multiply_v4(const PanelProduct<T>& run) {
  multiply_all<S>(run);
}
template <typename S, typename T>
[[gnu::target("arch=x86-64-v4")]] void add_outer_v4(const OuterProduct<T>& run) {
  add_outer_all<S>(run);
}
template <typename S, typename T>
[[gnu::target("arch=x86-64-v4")]] void pack_v4(const Matrix<T>& weights, int64_t width, T* to) {
  pack_rows<T, S::bytes>(weights, width, to);
}
#endif

template <typename T>
struct Tiles {
  PanelTiles<T> panels;
  OuterTiles<T> outer;
};

template <typename T, int vectors>
Tiles<T> tiles_for_this_processor() {
#ifdef __x86_64__
  using Large = TileShape<T, 64, vectors>;
  using Middle = TileShape<T, 32, vectors>;
  if (__builtin_cpu_supports("x86-64-v4"))
    return {{Large::width, multiply_v4<Large, T>, pack_v4<Large, T>},
            {Large::width, add_outer_v4<Large, T>}};
  if (__builtin_cpu_supports("x86-64-v3"))
    return {{Middle::width, multiply_v3<Middle, T>, pack_v3<Middle, T>},
            {Middle::width, add_outer_v3<Middle, T>}};
#endif
  using Small = TileShape<T, 16, vectors>;
  return {{Small::width, multiply<Small, T>, pack<Small, T>}, {Small::width, add_outer<Small, T>}};
}

template <typename T>
const Tiles<T>& tiles_for(int64_t channels) {
  static const Tiles<T> narrow = tiles_for_this_processor<T, 1>();
  static const Tiles<T> wide = tiles_for_this_processor<T, 2>();
  return channels <= narrow.panels.width ? narrow : wide;
}

}  // namespace

template <typename T>
const PanelTiles<T>& panel_tiles(int64_t channels) {
  return tiles_for<T>(channels).panels;
}

template <typename T>
const OuterTiles<T>& outer_tiles(int64_t channels) {
  return tiles_for<T>(channels).outer;
}

template <>
const PanelTiles<c10::BFloat16>& panel_tiles(int64_t /*channels*/) {
  static const PanelTiles<c10::BFloat16> tiles{2 * kMatrixColumns, multiply_by_matrix_unit,
                                               pack_row_pairs};
  return tiles;
}

template const PanelTiles<float>& panel_tiles(int64_t channels);
template const PanelTiles<double>& panel_tiles(int64_t channels);
template const OuterTiles<float>& outer_tiles(int64_t channels);
template const OuterTiles<double>& outer_tiles(int64_t channels);

}  // namespace mpi4dl
