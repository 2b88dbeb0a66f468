#pragma once

#include <vector>

#include "models/registry.hpp"
#include "plan/stage_plan.hpp"

// What tests of balances share.
namespace mpi4dl::testing {

inline Graph small_resnet() {
  return build_model({.name = "resnet", .image = {64, 64}, .depth = 29});
}

/// Makes a chain of convolutions, a cell each, that are alike; those of equal letters share their
/// parameters.
inline Graph convolutions(const std::string& letters, bool frozen = false) {
  Graph graph({.channels = 2, .space = {8, 8}});
  Value x = graph.input();
  for (size_t cell = 0; cell < letters.size(); ++cell) {
    graph.begin_cell(std::to_string(cell));
    const Convolution conv{.out_channels = 2, .kernel = {1, 1}};
    const std::string letter(1, letters[cell]);
    x = graph.add("conv", conv, {x},
                  {{.name = letter + ".weight", .frozen = frozen},
                   {.name = letter + ".bias", .frozen = frozen}});
  }
  graph.set_output(x);
  return graph;
}

/// Counts the cells of each stage.
inline std::vector<int> sizes(const std::vector<CellRange>& ranges) {
  std::vector<int> cells;
  for (const CellRange& range : ranges) cells.push_back(range.last - range.first);
  return cells;
}

}  // namespace mpi4dl::testing
