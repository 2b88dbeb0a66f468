#include "report/progress.hpp"

#include <gtest/gtest.h>

namespace mpi4dl {
namespace {

StepRecord record(int64_t epoch, int64_t step) {
  return {.epoch = epoch,
          .epochs = 3,
          .step = step,
          .steps = 40,
          .loss = 1.25,
          .correct = 4,
          .images = 8,
          .seconds = 0.5,
          .resident_bytes = int64_t{300} << 20};
}

TEST(ProgressBar, TellsLossSpeedTimeLeftAndMemory) {
  EXPECT_EQ(progress_bar(record(1, 10), 0.5, 120),
            "epoch 1/3 [######..................] 10/40  loss 1.2500  16.00 images/s  0:55 left  "
            "300 MiB");
  EXPECT_EQ(progress_bar(record(3, 40), 0.5, 120).find("[########################]"), 10U);
}

TEST(ProgressBar, CountsHoursOfLongRuns) {
  EXPECT_NE(progress_bar(record(1, 40), 100, 120).find(" 2:13:20 left"), std::string::npos);
}

TEST(ProgressBar, FitsTheTerminal) {
  for (size_t width = 1; width < 120; ++width)
    EXPECT_LE(progress_bar(record(1, 10), 0.5, width).size(), width);
  EXPECT_EQ(progress_bar(record(1, 10), 0.5, 79).find("epoch 1/3 [#"), 0U);  // a shorter bar
}

TEST(RunTotals, LeaveTheFirstStepOutOfTheSpeed) {
  RunTotals totals;
  EXPECT_EQ(totals.mean_speed(), 0);
  EXPECT_EQ(totals.median_speed(), 0);
  for (const double seconds : {8.0, 1.0, 2.0, 4.0, 8.0}) {
    StepRecord step = record(1, totals.steps() + 1);
    step.seconds = seconds;
    totals.add(step);
  }
  EXPECT_EQ(totals.mean_speed(), (8 + 4 + 2 + 1) / 4.0);
  EXPECT_EQ(totals.median_speed(), 3);  // between 2 and 4
  EXPECT_EQ(totals.resident_bytes(), int64_t{300} << 20);
}

TEST(RunTotals, WeighTheLossOfAnEpochByImages) {
  RunTotals totals;
  totals.add(record(1, 40));
  StepRecord step = record(2, 1);
  totals.add(step);
  step.loss = 2;
  step.images = 24;
  totals.add(step);
  EXPECT_EQ(totals.epoch().number, 2);
  EXPECT_EQ(totals.epoch().loss(), (1.25 * 8 + 2 * 24) / 32);
  EXPECT_EQ(totals.epoch().accuracy(), 8.0 / 32);
}

}  // namespace
}  // namespace mpi4dl
