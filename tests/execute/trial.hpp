#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "comm/communicator.hpp"
#include "plan/stage_plan.hpp"

namespace mpi4dl::testing {

/// Is a small graph with its layout and random numbers: run on tiles, and by libtorch alone on the
/// whole tensor, it must give the same.
struct Trial {
  Graph graph;
  Grid grid = {};
  int64_t batch = 1;
  HaloDesign halo = {};
  uint64_t seed = 1;
  c10::ScalarType type = c10::ScalarType::Double;
  bool training = true;
  bool ties = false;  ///< inputs are -1, 0 and 1 only, so that many are equal

  at::Tensor pixels(const Box& box) const;
  at::Tensor output_gradient(const Box& box) const;
  std::vector<int64_t> shape_of(int node) const;
};

std::string describe(const Trial& trial);

/// Holds whole tensors, the same on every rank.
struct Outcome {
  at::Tensor output, input_gradient;
  std::map<std::string, at::Tensor> gradients, statistics;  ///< by parameter
};

/// Runs the graph on tiles. Collective over `stage`, which has one rank per tile.
Outcome run_on_tiles(const Trial& trial, const Communicator& stage);

/// Runs it by libtorch, in float64, with the same (rounded) inputs and parameters.
Outcome run_whole(const Trial& trial);

/// Expects every element within `tolerance` of the larger of 1 and the largest expected one.
void expect_equal(const Outcome& result, const Outcome& expected, double tolerance);

}  // namespace mpi4dl::testing
