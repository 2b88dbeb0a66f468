#pragma once

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/instruction_set.hpp"

namespace mpi4dl::testing {

/// Is a type, and how far results in it may be from those in float64.
struct Precision {
  c10::ScalarType type;
  double tolerance;
};

/// Tests of kernels that run in several types, each with every instruction set that the processor
/// has and MPI4DL_MAX_ISA allows.
class EachInstructionSet : public ::testing::TestWithParam<std::tuple<Precision, InstructionSet>> {
 protected:
  static c10::ScalarType type() { return std::get<0>(GetParam()).type; }
  static double tolerance() { return std::get<0>(GetParam()).tolerance; }
  static InstructionSet set() { return std::get<1>(GetParam()); }
};

template <typename... Precisions>
auto each_instruction_set(const Precisions&... precisions) {
  return ::testing::Combine(::testing::Values(precisions...),
                            ::testing::ValuesIn(instruction_sets()));
}

inline std::string name_of_case(
    const ::testing::TestParamInfo<std::tuple<Precision, InstructionSet>>& info) {
  const auto& [precision, set] = info.param;
  return fmt::format("{}_{}", c10::toString(precision.type), name_of(set));
}

}  // namespace mpi4dl::testing
