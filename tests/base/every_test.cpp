#include "base/every.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Returns the steps of two epochs of five, counted over both, after which it is due.
std::vector<int64_t> due_steps(const std::string& text) {
  const Every every = parse_every("--eval-every", text);
  std::vector<int64_t> found;
  for (int64_t epoch = 1; epoch <= 2; ++epoch)
    for (int64_t step = 1; step <= 5; ++step)
      if (every.due(epoch, step, 5)) found.push_back((epoch - 1) * 5 + step);
  return found;
}

using Steps = std::vector<int64_t>;

TEST(Every, CountsStepsOverAllEpochs) {
  EXPECT_EQ(due_steps("3steps"), (Steps{3, 6, 9}));
  EXPECT_EQ(due_steps("1step"), (Steps{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(Every, CountsEpochsByTheirLastSteps) {
  EXPECT_EQ(due_steps("1"), (Steps{5, 10}));
  EXPECT_EQ(due_steps("1epoch"), (Steps{5, 10}));
  EXPECT_EQ(due_steps("2epochs"), (Steps{10}));
}

TEST(Every, IsNeverWithoutText) {
  EXPECT_EQ(due_steps(""), Steps{});
}

TEST(Every, NamesTheFlagOfABadText) {
  for (const char* text : {"0", "-1", "2days", "steps", "1.5", "1 step", "99999999999999999999"}) {
    try {
      parse_every("--eval-every", text);
      ADD_FAILURE() << text;
    } catch (const UsageError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("--eval-every " + std::string(text)));
    }
  }
}

}  // namespace
}  // namespace mpi4dl
