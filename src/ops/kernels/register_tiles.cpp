#include "ops/kernels/register_tiles.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/rounding.hpp"
#include "ops/kernels/cache_bytes.hpp"
#include "ops/kernels/matrix_unit.hpp"

namespace mpi4dl {
namespace {

/// Sums of `rows` pixels or channels, each as many `vectors` of `bytes`, that stay in registers
/// next to the vectors that they are made of.
template <typename T, int bytes_, int vectors_>
struct TileShape {
  static constexpr int bytes = bytes_, vectors = vectors_;
  static constexpr int lanes = bytes / static_cast<int>(sizeof(T));
  static constexpr int width = lanes * vectors;
  static constexpr int registers = bytes == 64 ? 32 : 16;
  static constexpr int rows = std::min(12, registers * 3 / 4 / vectors);
  /// There is room for the weights of three taps, and for one number of a pixel.
  static constexpr bool takes_three_taps = (rows + 3) * vectors < registers;
  typedef T Vector __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));
};

/// Some of a pixel's sums.
template <typename T, typename Stored>
[[gnu::always_inline]] inline void store(const T* sums, const Stored* addend, int64_t channels,
                                         Stored* to) {
  for (int64_t channel = 0; channel < channels; ++channel)
    to[channel] =
        narrow_to<Stored>(sums[channel] + (addend == nullptr ? T{0} : widen(addend[channel])));
}

/// Adds the products of some channels of pixels that lie `pitch` apart.
template <typename S, typename T, int rows, int vectors>
[[gnu::always_inline]] inline void add_channels(const T* numbers, const T* weights, int64_t pitch,
                                                int64_t channels,
                                                typename S::Vector (&sums)[rows][vectors]) {
#pragma GCC unroll 4
  for (int64_t channel = 0; channel < channels; ++channel) {
    typename S::Vector weight[vectors];
    for (int v = 0; v < vectors; ++v)
      weight[v] = reinterpret_cast<const typename S::Vector*>(weights + channel * S::width)[v];
#pragma GCC unroll 12
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[row][v] += numbers[row * pitch + channel] * weight[v];
  }
}

/// Adds the products of three times as many channels as lie between two pixels. That is a number of
/// this pixel, of its neighbour and of the next one, for three taps side by side; and it is read
/// once for the three pixels that it is a neighbour of.
template <typename S, typename T, int rows, int vectors>
[[gnu::always_inline]] inline void add_neighbours(const T* numbers, const T* weights, int64_t pitch,
                                                  typename S::Vector (&sums)[rows][vectors]) {
  using Vector = typename S::Vector;
  constexpr int half = (rows + 2) / 2;  // fewer distances to remember
  const T* others = numbers + half * pitch;
  const T* second = weights + pitch * S::width;
  const T* third = second + pitch * S::width;
  for (int64_t channel = 0; channel < pitch; ++channel) {
    Vector weight[3][vectors];
    for (int v = 0; v < vectors; ++v) {
      weight[0][v] = reinterpret_cast<const Vector*>(weights)[v];
      weight[1][v] = reinterpret_cast<const Vector*>(second)[v];
      weight[2][v] = reinterpret_cast<const Vector*>(third)[v];
    }
#pragma GCC unroll 14
    for (int pixel = 0; pixel < rows + 2; ++pixel) {
      const T number = pixel < half ? numbers[pixel * pitch] : others[(pixel - half) * pitch];
#pragma GCC unroll 3
      for (int tap = 0; tap < 3; ++tap)
        if (pixel >= tap && pixel - tap < rows)
#pragma GCC unroll 2
          for (int v = 0; v < vectors; ++v) sums[pixel - tap][v] += number * weight[tap][v];
    }
    ++numbers, ++others;
    weights += S::width, second += S::width, third += S::width;
  }
}

template <typename S, int rows, typename T, typename Stored>
[[gnu::always_inline]] inline void multiply_rows(const PanelProduct<T, Stored>& run,
                                                 int64_t pixel) {
  const T* x = run.x + pixel * run.x_pitch;
  const Stored* addend = run.addend == nullptr ? nullptr : run.addend + pixel * run.addend_pitch;
  Stored* y = run.y + pixel * run.y_pitch;
  using Vector = typename S::Vector;
  Vector sums[rows][S::vectors];
  for (int row = 0; row < rows; ++row)
    for (int v = 0; v < S::vectors; ++v)
      sums[row][v] = reinterpret_cast<const Vector*>(run.bias)[v];
  for (int64_t tap = 0; tap < run.tap_count; ++tap) {
    const T* numbers = x + run.taps[tap].pixel;
    const T* weights = run.panel + run.taps[tap].weight;
    int64_t channels = run.taps[tap].channels;
    if constexpr (S::takes_three_taps)
      while (run.x_pitch > 0 && channels >= 3 * run.x_pitch) {
        add_neighbours<S>(numbers, weights, run.x_pitch, sums);
        numbers += 3 * run.x_pitch;
        weights += 3 * run.x_pitch * S::width;
        channels -= 3 * run.x_pitch;
      }
    add_channels<S>(numbers, weights, run.x_pitch, channels, sums);
  }
  for (int row = 0; row < rows; ++row) {
    Stored* to = y + row * run.y_pitch;
    const Stored* more = addend == nullptr ? nullptr : addend + row * run.addend_pitch;
    const T* numbers = reinterpret_cast<const T*>(sums[row]);
    if (run.y_channels < S::width) {
      store(numbers, more, run.y_channels, to);
    } else if constexpr (std::is_same_v<T, Stored>) {
      for (int v = 0; v < S::vectors; ++v)
        reinterpret_cast<Vector*>(to)[v] =
            more == nullptr ? sums[row][v]
                            : sums[row][v] + reinterpret_cast<const Vector*>(more)[v];
    } else {
      store(numbers, more, S::width, to);
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
#pragma GCC unroll 4
    for (int64_t left = run.pairs[pair].pixels; left > 0; --left) {
      Vector numbers[S::vectors];
      for (int v = 0; v < S::vectors; ++v) numbers[v] = reinterpret_cast<const Vector*>(x)[v];
#pragma GCC unroll 12
      for (int row = 0; row < rows; ++row)
#pragma GCC unroll 4
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

template <typename S, typename T, typename Stored>
[[gnu::always_inline]] inline void multiply_all(const PanelProduct<T, Stored>& run) {
  cut_evenly<S::rows>(run.pixels,
                      [&](auto rows, int64_t begin, int64_t end) __attribute__((always_inline)) {
                        for (int64_t pixel = begin; pixel < end; pixel += rows)
                          multiply_rows<S, decltype(rows)::value>(run, pixel);
                      });
}

template <typename S, typename T>
[[gnu::always_inline]] inline void add_outer_all(const OuterProduct<T>& run) {
  cut_evenly<S::rows>(run.rows,
                      [&](auto rows, int64_t begin, int64_t end) __attribute__((always_inline)) {
                        for (int64_t first = begin; first < end; first += rows)
                          add_outer_rows<S, T, decltype(rows)::value>(run, first);
                      });
}

// One function for each generation of processors; what it calls is compiled for it too.
template <typename S, typename T, typename Stored>
void multiply(const PanelProduct<T, Stored>& run) {
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
template <typename S, typename T, typename Stored>
[[gnu::target("arch=x86-64-v3")]] void multiply_v3(const PanelProduct<T, Stored>& run) {
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
template <typename S, typename T, typename Stored>
[[gnu::target("arch=x86-64-v4")]] void multiply_v4(const PanelProduct<T, Stored>& run) {
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

template <typename T, typename Stored>
struct Tiles {
  PanelTiles<T, Stored> panels;
  OuterTiles<T> outer;
};

template <typename T, typename Stored, int vectors>
Tiles<T, Stored> tiles_for_this_processor() {
#ifdef __x86_64__
  using Large = TileShape<T, 64, vectors>;
  using Middle = TileShape<T, 32, std::min(vectors, 2)>;
  if (__builtin_cpu_supports("x86-64-v4"))
    return {{Large::width, multiply_v4<Large, T, Stored>, pack_v4<Large, T>},
            {Large::width, add_outer_v4<Large, T>}};
  if (__builtin_cpu_supports("x86-64-v3"))
    return {{Middle::width, multiply_v3<Middle, T, Stored>, pack_v3<Middle, T>},
            {Middle::width, add_outer_v3<Middle, T>}};
#endif
  using Small = TileShape<T, 16, std::min(vectors, 2)>;
  return {{Small::width, multiply<Small, T, Stored>, pack<Small, T>},
          {Small::width, add_outer<Small, T>}};
}

/// The wider a tile, the fewer numbers are read for each product; but its last channels may be
/// computed in vain, and its panels, of `depth` rows, are larger.
template <typename T, typename Stored>
const Tiles<T, Stored>& tiles_for(int64_t channels, int64_t depth) {
  static const Tiles<T, Stored> narrow = tiles_for_this_processor<T, Stored, 1>();
  static const std::array wider{tiles_for_this_processor<T, Stored, 2>(),
                                tiles_for_this_processor<T, Stored, 3>(),
                                tiles_for_this_processor<T, Stored, 4>()};
  if (channels <= narrow.panels.width) return narrow;
  const Tiles<T, Stored>* best = wider.data();
  for (const Tiles<T, Stored>& tiles : wider) {
    const int64_t width = tiles.panels.width;
    if (round_up(channels, width) <= round_up(channels, best->panels.width) &&
        depth * width * static_cast<int64_t>(sizeof(T)) <= kPanelBytes)
      best = &tiles;
  }
  return *best;
}

}  // namespace

template <typename T, typename Stored>
const PanelTiles<T, Stored>& panel_tiles(int64_t channels, int64_t depth) {
  return tiles_for<T, Stored>(channels, depth).panels;
}

template <typename T>
const OuterTiles<T>& outer_tiles(int64_t channels) {
  return tiles_for<T, T>(channels, 0).outer;
}

template <>
const PanelTiles<c10::BFloat16>& panel_tiles(int64_t /*channels*/, int64_t /*depth*/) {
  static const PanelTiles<c10::BFloat16> tiles{2 * kMatrixColumns, multiply_by_matrix_unit,
                                               pack_row_pairs};
  return tiles;
}

template const PanelTiles<float>& panel_tiles(int64_t channels, int64_t depth);
template const PanelTiles<float, c10::BFloat16>& panel_tiles(int64_t channels, int64_t depth);
template const PanelTiles<double>& panel_tiles(int64_t channels, int64_t depth);
template const OuterTiles<float>& outer_tiles(int64_t channels);
template const OuterTiles<double>& outer_tiles(int64_t channels);

}  // namespace mpi4dl
