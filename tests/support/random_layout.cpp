#include "support/random_layout.hpp"

namespace mpi4dl::testing {

Shape draw_image(Dice& dice, const std::vector<Grid>& grids) {
  const bool volume = dice.chance(0.1);
  const int64_t most = volume ? 18 : 40;
  int rows = 5, cols = 5;
  for (const Grid& grid : grids) rows = std::max(rows, grid.rows), cols = std::max(cols, grid.cols);
  Shape image{dice.pick(1, 3), {dice.pick(2 * rows - 1, most), dice.pick(2 * cols - 1, most)}};
  if (volume) image.space.insert(image.space.begin(), dice.pick(3, 5));
  return image;
}

std::vector<Grid> draw_stages(Dice& dice, int ranks) {
  std::vector<Grid> stages;
  const bool one = dice.chance(0.2);
  while (ranks > 0) {
    const int size = one ? ranks : static_cast<int>(dice.pick(1, ranks));
    stages.push_back(dice.grid(size));
    ranks -= size;
  }
  return stages;
}

int draw_divisor(Dice& dice, int number) {
  std::vector<int> divisors;
  for (int d = 1; d <= number; ++d)
    if (number % d == 0) divisors.push_back(d);
  return dice.one_of(divisors);
}

std::vector<CellRange> draw_balance(Dice& dice, int cells, int stages) {
  validate(stages <= cells, "too many stages");
  std::vector<CellRange> ranges;
  int first = 0;
  for (int left = stages; left > 0; --left) {
    const int last =
        left == 1 ? cells : first + static_cast<int>(dice.pick(1, cells - first - left + 1));
    ranges.push_back({first, last});
    first = last;
  }
  return ranges;
}

}  // namespace mpi4dl::testing
