#include "backend/cpu/microkernels.hpp"

#include <algorithm>
#include <array>

#include "backend/cpu/amx.hpp"
#include "backend/cpu/compiled_for.hpp"
#include "backend/cpu/register_tile.hpp"
#include "backend/cpu/tuning.hpp"
#include "base/error.hpp"
#include "base/rounding.hpp"

namespace mpi4dl {
namespace {

using c10::BFloat16;
using enum InstructionSet;

constexpr int vector_bytes(InstructionSet set) {
  return set == sse2 ? 16 : set == avx2 ? 32 : 64;
}

template <typename T>
constexpr c10::ScalarType kType = c10::CppTypeToScalarType<T>::value;

/// Makes a row of the first table, with a register tile that is so many vectors wide.
template <InstructionSet set, int vectors, typename T, typename Stored = T>
constexpr Microkernel row() {
  using Tile = RegisterTile<T, vector_bytes(set), vectors>;
  return {.set = set,
          .stored = kType<Stored>,
          .operand = kType<T>,
          .rows = Tile::rows,
          .width = Tile::width,
          .k_unit = 1,
          .pack = compiled_for<PackPanel<Tile>, const Matrix<void>&, int64_t, void*>(set),
          .run = compiled_for<MultiplyTaps<Tile, Stored>, const PanelProduct&>(set)};
}

/// Makes a row of the second table.
template <InstructionSet set, int vectors, typename T>
constexpr OuterMicrokernel outer_row() {
  using Tile = RegisterTile<T, vector_bytes(set), vectors>;
  return {.set = set,
          .operand = kType<T>,
          .rows = Tile::rows,
          .width = Tile::width,
          .run = compiled_for<AddOuterProduct<Tile>, const OuterProduct&>(set)};
}

// Rows of one type and set follow each other from the narrowest tile to the widest.

const std::array kMicrokernels{
    row<sse2, 1, float>(),
    row<sse2, 2, float>(),
    row<sse2, 1, double>(),
    row<sse2, 2, double>(),
    row<sse2, 1, float, BFloat16>(),
    row<sse2, 2, float, BFloat16>(),
#ifdef __x86_64__
    row<avx2, 1, float>(),
    row<avx2, 2, float>(),
    row<avx2, 1, double>(),
    row<avx2, 2, double>(),
    row<avx2, 1, float, BFloat16>(),
    row<avx2, 2, float, BFloat16>(),
    row<avx512, 1, float>(),
    row<avx512, 2, float>(),
    row<avx512, 3, float>(),
    row<avx512, 4, float>(),
    row<avx512, 1, double>(),
    row<avx512, 2, double>(),
    row<avx512, 3, double>(),
    row<avx512, 4, double>(),
    row<avx512, 1, float, BFloat16>(),
    row<avx512, 2, float, BFloat16>(),
    row<avx512, 3, float, BFloat16>(),
    row<avx512, 4, float, BFloat16>(),
    Microkernel{.set = amx,
                .stored = at::kBFloat16,
                .operand = at::kBFloat16,
                .rows = 2 * kAmxRows,
                .width = 2 * kAmxColumns,
                .k_unit = 2,
                .pack = pack_amx,
                .run = multiply_amx},
#endif
};

const std::array kOuterMicrokernels{
    outer_row<sse2, 1, float>(),    outer_row<sse2, 2, float>(),    outer_row<sse2, 1, double>(),
    outer_row<sse2, 2, double>(),
#ifdef __x86_64__
    outer_row<avx2, 1, float>(),    outer_row<avx2, 2, float>(),    outer_row<avx2, 1, double>(),
    outer_row<avx2, 2, double>(),   outer_row<avx512, 1, float>(),  outer_row<avx512, 2, float>(),
    outer_row<avx512, 3, float>(),  outer_row<avx512, 4, float>(),  outer_row<avx512, 1, double>(),
    outer_row<avx512, 2, double>(), outer_row<avx512, 3, double>(), outer_row<avx512, 4, double>(),
#endif
};

/// Chooses of the rows of a type those of the largest set, at most `set`, and of these a tile. One
/// that is a vector wide has enough for few channels. The wider a tile, the fewer values are read
/// for each product; but its last channels may be computed in vain, and its panels, of `depth`
/// rows, are larger.
template <typename Row>
const Row& choose(std::span<const Row> table, c10::ScalarType Row::* type_of, c10::ScalarType type,
                  InstructionSet set, int64_t channels, int64_t depth) {
  const Row *narrowest = nullptr, *best = nullptr;
  for (const Row& row : table) {
    if (row.*type_of != type || row.set > set) continue;
    if (narrowest == nullptr || row.set > narrowest->set) {
      narrowest = best = &row;
    } else if (row.set == narrowest->set && channels > narrowest->width) {
      const int64_t bytes = depth * row.width * static_cast<int64_t>(c10::elementSize(row.operand));
      const bool covers = round_up(channels, row.width) <= round_up(channels, best->width);
      if (best == narrowest || (covers && bytes <= kTuning.panel_bytes)) best = &row;
    }
  }
  ensure(best != nullptr, "there is no microkernel for {}", c10::toString(type));
  return *best;
}

}  // namespace

std::span<const Microkernel> microkernels() {
  return kMicrokernels;
}

std::span<const OuterMicrokernel> outer_microkernels() {
  return kOuterMicrokernels;
}

const Microkernel& choose_microkernel(c10::ScalarType stored, InstructionSet set, int64_t channels,
                                      int64_t depth) {
  return choose(microkernels(), &Microkernel::stored, stored, set, channels, depth);
}

const OuterMicrokernel& choose_outer_microkernel(c10::ScalarType operand, InstructionSet set,
                                                 int64_t channels) {
  return choose(outer_microkernels(), &OuterMicrokernel::operand, operand, set, channels,
                /*depth=*/0);
}

}  // namespace mpi4dl
