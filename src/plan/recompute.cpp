#include "plan/recompute.hpp"

#include <limits>
#include <utility>

#include "plan/memory.hpp"

namespace mpi4dl {
namespace {

/// Counts what stays after the forward of each cell: all that its backward needs, or only what
/// later cells read.
struct KeptByCell {
  std::vector<int64_t> all, passed_on;
};

int64_t of_cell(const std::vector<int64_t>& so_far, size_t cell) {
  return so_far[cell] - (cell > 0 ? so_far[cell - 1] : 0);
}

/// Cuts the cells into runs as long as possible such that no backward needs more than `limit`: what
/// earlier runs hand to it, which later ones have used up by then, and all of its own.
std::vector<CellRange> cut_within(int64_t limit, const KeptByCell& kept, int first) {
  std::vector<CellRange> cut{{first, first}};
  int64_t before = 0, own = 0;
  for (size_t cell = 0; cell < kept.all.size(); ++cell) {
    own += of_cell(kept.all, cell);
    if (before + own > limit && cut.back().first < cut.back().last) {
      before += of_cell(kept.passed_on, cell - 1);
      own = of_cell(kept.all, cell);
      cut.push_back({cut.back().last, cut.back().last});
    }
    ++cut.back().last;
  }
  return cut;
}

}  // namespace

std::vector<CellRange> recomputed_cells(const StagePlan& plan) {
  constexpr int kAnyRank = 0, kAnySize = 4;  // tiles are alike, and only proportions count
  constexpr int kTries = 64;
  const CellRange all = plan.cells();
  std::vector<CellRange> single;
  for (int cell = all.first; cell < all.last; ++cell) single.push_back({cell, cell + 1});
  const KeptByCell kept{kept_by_cell(plan, kAnyRank, kAnySize),
                        kept_by_cell(plan, kAnyRank, kAnySize, single)};
  std::vector<CellRange> best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 1; i <= kTries; ++i) {
    std::vector<CellRange> cut = cut_within(kept.all.back() / kTries * i, kept, all.first);
    const int64_t peak = activation_bytes(plan, kAnyRank, kAnySize, cut).peak;
    if (peak < least) best = std::move(cut), least = peak;
  }
  return best;
}

}  // namespace mpi4dl
