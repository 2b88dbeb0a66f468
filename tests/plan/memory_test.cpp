#include "plan/memory.hpp"

#include <gtest/gtest.h>

namespace mpi4dl {
namespace {

int64_t peak_of_convolution(bool frozen) {
  Graph graph({.channels = 256, .space = {4, 4}});
  graph.begin_cell("all");
  graph.set_output(graph.add("conv", Convolution{.out_channels = 256, .kernel = {3, 3}},
                             {graph.input()}, {{.frozen = frozen}, {.frozen = frozen}}));
  return activation_bytes(StagePlan(graph, {}, 1, {}), 0, sizeof(float)).peak;
}

TEST(Memory, OfAFrozenConvolutionHasItsPackedWeights) {
  EXPECT_EQ(peak_of_convolution(/*frozen=*/true), peak_of_convolution(/*frozen=*/false));
}

}  // namespace
}  // namespace mpi4dl
