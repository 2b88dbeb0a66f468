#include "backend/device.hpp"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.hpp"
#include "support/simulated_device.hpp"

namespace mpi4dl {
namespace {

constexpr at::DeviceType kSimulated = at::DeviceType::PrivateUse1;

at::Device simulated(int index) {
  return {kSimulated, static_cast<at::DeviceIndex>(index)};
}

TEST(Device, IsTakenByThePlaceOnTheNodeModuloTheirNumber) {
  ASSERT_EQ(device_count(kSimulated), 2);
  for (const char* wanted : {"auto", "privateuseone"})
    for (int rank = 0; rank < 5; ++rank)
      EXPECT_EQ(choose_device(wanted, rank), simulated(rank % 2)) << wanted << ", rank " << rank;
  EXPECT_EQ(choose_device("privateuseone:1", 0), simulated(1));
  EXPECT_EQ(choose_device("cpu", 3), at::Device(at::kCPU));
}

TEST(Device, IsRefusedWhereThereIsNone) {
  EXPECT_THROW(choose_device("privateuseone:2", 0), UsageError);
  EXPECT_THROW(choose_device("gpu", 0), UsageError);
  EXPECT_THROW(choose_device("xla", 0), UsageError);
}

TEST(DeviceArithmetic, MultipliesInFloat32UnlessAskedForLess) {
  const at::Context& context = at::globalContext();
  for (const bool tf32 : {true, false}) {
    set_arithmetic({.tf32 = tf32});
    EXPECT_EQ(context.allowTF32CuDNN(), tf32);
    EXPECT_EQ(context.allowTF32CuBLAS(), tf32);
    EXPECT_EQ(multiplies_tf32(), tf32);
  }
}

TEST(DeviceArithmetic, IsDeterministicWhereAskedFor) {
  const at::Context& context = at::globalContext();
  set_arithmetic({});
  EXPECT_FALSE(context.deterministicAlgorithms());
  set_arithmetic({.deterministic = true});
  EXPECT_TRUE(context.deterministicAlgorithms());
  EXPECT_TRUE(context.deterministicCuDNN());
  EXPECT_FALSE(context.benchmarkCuDNN());
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
}

}  // namespace
}  // namespace mpi4dl
