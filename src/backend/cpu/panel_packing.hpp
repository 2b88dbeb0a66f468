#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace mpi4dl {

/// Views a matrix whose elements lie anywhere: (row, column) at `data[row * row_stride + column *
/// column_stride]`.
template <typename T>
struct Matrix {
  const T* data;
  int64_t rows, row_stride, columns, column_stride;

  /// Returns the matrix with elements of a type, if it has none (void).
  template <typename Element>
  Matrix<Element> as() const {
    return {static_cast<const Element*>(data), rows, row_stride, columns, column_stride};
  }
};

/// Square is a square of vectors that is transposed in registers.
template <typename T, int bytes>
struct Square {
  static constexpr int lanes = bytes / static_cast<int>(sizeof(T));
  typedef T Vector __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));
  Vector rows[lanes];

  /// Moves element (row, column) to (column, row): bits of the two indices change places one by
  /// one.
  [[gnu::always_inline]] void transpose() { transpose_bits<lanes / 2>(); }

 private:
  template <int bit>
  [[gnu::always_inline]] void transpose_bits() {
    if constexpr (bit > 0) {
      transpose_bit<bit>(std::make_integer_sequence<int, lanes>());
      transpose_bits<bit / 2>();
    }
  }

  template <int bit, int... lane>
  [[gnu::always_inline]] void transpose_bit(std::integer_sequence<int, lane...> /*lanes*/) {
#pragma GCC unroll 16
    for (int row = 0; row < lanes; ++row) {
      if ((row & bit) != 0) continue;
      const Vector upper = rows[row], lower = rows[row + bit];
      rows[row] =
          __builtin_shufflevector(upper, lower, ((lane & bit) != 0 ? lanes + lane - bit : lane)...);
      rows[row + bit] =
          __builtin_shufflevector(upper, lower, ((lane & bit) != 0 ? lanes + lane : lane + bit)...);
    }
  }
};

/// Writes all elements of a matrix, one by one, `width` apart in each column; in small squares, so
/// that both sides stay in L1.
template <typename T>
[[gnu::always_inline]] inline void pack_elements(const Matrix<T>& from, int64_t width, T* to) {
  constexpr int64_t kSquare = 16;
  for (int64_t first = 0; first < from.rows; first += kSquare)
    for (int64_t column = 0; column < from.columns; ++column) {
      const T* elements = from.data + column * from.column_stride;
      for (int64_t row = first; row < std::min(first + kSquare, from.rows); ++row)
        to[row * width + column] = elements[row * from.row_stride];
    }
}

/// Does the same for a matrix whose columns are contiguous, with vectors of so many bytes.
template <typename T, int bytes>
[[gnu::always_inline]] inline void pack_columns(const Matrix<T>& from, int64_t width, T* to) {
  using Block = Square<T, bytes>;
  constexpr int64_t kLanes = Block::lanes;
  const int64_t rows = from.rows / kLanes * kLanes, columns = from.columns / kLanes * kLanes;
  for (int64_t column = 0; column < columns; column += kLanes)
    for (int64_t row = 0; row < rows; row += kLanes) {
      Block square;
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i)
        square.rows[i] = *reinterpret_cast<const typename Block::Vector*>(
            from.data + (column + i) * from.column_stride + row);
      square.transpose();
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i)
        *reinterpret_cast<typename Block::Vector*>(to + (row + i) * width + column) =
            square.rows[i];
    }
  pack_elements(Matrix<T>{from.data + rows, from.rows - rows, 1, columns, from.column_stride},
                width, to + rows * width);
  pack_elements(Matrix<T>{from.data + columns * from.column_stride, from.rows, 1,
                          from.columns - columns, from.column_stride},
                width, to + columns);
}

/// Does the same for a matrix whose rows are contiguous.
template <typename T, int bytes>
[[gnu::always_inline]] inline void copy_rows(const Matrix<T>& from, int64_t width, T* to) {
  using Vector = typename Square<T, bytes>::Vector;
  constexpr int64_t kLanes = Square<T, bytes>::lanes;
  for (int64_t row = 0; row < from.rows; ++row, to += width) {
    const T* elements = from.data + row * from.row_stride;
    int64_t column = 0;
    for (; column + kLanes <= from.columns; column += kLanes)
      *reinterpret_cast<Vector*>(to + column) = *reinterpret_cast<const Vector*>(elements + column);
    for (; column < from.columns; ++column) to[column] = elements[column];
  }
}

/// Writes `width` elements for each row. What is missing becomes zero.
template <typename T, int bytes>
[[gnu::always_inline]] inline void pack_rows(const Matrix<T>& from, int64_t width, T* to) {
  if (from.columns < width) std::fill(to, to + from.rows * width, T{0});
  if (from.column_stride == 1) {
    copy_rows<T, bytes>(from, width, to);
  } else if (from.row_stride == 1) {
    pack_columns<T, bytes>(from, width, to);
  } else {
    pack_elements(from, width, to);
  }
}

/// Does the same with two rows interleaved, element by element (VNNI layout): there is an even
/// number of them.
template <typename T>
void pack_row_pairs(const Matrix<T>& from, int64_t width, T* to) {
  using Pair = std::array<T, 2>;
  if (from.columns < width) std::fill(to, to + from.rows * width, T{0});
  if (from.row_stride == 1 && from.column_stride % 2 == 0) {  // pairs are contiguous already
    pack_elements(Matrix<Pair>{reinterpret_cast<const Pair*>(from.data), from.rows / 2, 1,
                               from.columns, from.column_stride / 2},
                  width, reinterpret_cast<Pair*>(to));
    return;
  }
  for (int64_t row = 0; row < from.rows; row += 2, to += 2 * width) {
    const T* even = from.data + row * from.row_stride;
    const T* odd = even + from.row_stride;
    for (int64_t column = 0; column < from.columns; ++column) {
      to[2 * column] = even[column * from.column_stride];
      to[2 * column + 1] = odd[column * from.column_stride];
    }
  }
}

}  // namespace mpi4dl
