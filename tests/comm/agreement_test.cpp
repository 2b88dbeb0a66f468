#include "comm/agreement.hpp"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "backend/device_errors.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

/// Has all ranks run together what throws this on the last of them; returns what they all throw.
template <typename Thrown, typename Given>
std::string together(const Given& given) {
  try {
    run_together(world(), [&] {
      if (world().rank() == world().size() - 1) throw Given(given);
    });
  } catch (const Thrown& error) {
    return error.what();
  }
  return "nothing";
}

TEST(RunTogether, ThrowsEverywhereWhatOneRankThrows) {
  EXPECT_EQ(together<UsageError>(UsageError("no such flag")), "no such flag");
  EXPECT_EQ(together<CommonError>(Error("the disk is full")), "the disk is full");
  run_together(world(), [] {});
}

TEST(RunTogether, ThrowsOneLineOfWhatLibtorchThrows) {
  EXPECT_EQ(together<CommonError>(c10::Error({__func__, __FILE__, __LINE__}, "no kernel\nadvice")),
            "no kernel");
}

TEST(RunTogether, SaysOfFullMemoryWhoseItIs) {
  const std::string full = gather_texts(world(), backend().device().str()).back();
  EXPECT_EQ(together<FullMemory>(c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "no more")),
            "device " + full + " has no memory left");
}

}  // namespace
}  // namespace mpi4dl::testing
