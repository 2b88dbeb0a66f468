#include "base/instruction_set.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

TEST(InstructionSet, IsReadByItsName) {
  for (const InstructionSet set : kInstructionSets)
    EXPECT_EQ(read_instruction_set(name_of(set)), set);
}

TEST(InstructionSet, AnotherNameIsAUsageError) {
  for (const char* name : {"", "AVX2", "avx", "neon"})
    EXPECT_THROW(read_instruction_set(name), UsageError);
  try {
    read_instruction_set("avx3");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "MPI4DL_MAX_ISA=avx3 names no instruction set; it may be sse2, avx2, avx512 or amx");
  }
}

TEST(InstructionSet, ContainsThoseBeforeIt) {
  using enum InstructionSet;
  EXPECT_EQ(instruction_sets(sse2), std::vector{sse2});
  EXPECT_EQ(instruction_sets(avx512), (std::vector{sse2, avx2, avx512}));
  EXPECT_EQ(instruction_sets().back(), instruction_set());
}

}  // namespace
}  // namespace mpi4dl
