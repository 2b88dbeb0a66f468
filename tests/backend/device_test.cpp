#include "backend/device.hpp"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "backend/device_errors.hpp"
#include "backend/libtorch_warnings.hpp"
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

TEST(DeviceErrors, AreOfFullMemoryWhoeverSaysSo) {
  const auto thrown = [](const std::string& words) {
    return c10::Error({__func__, __FILE__, __LINE__}, words);
  };
  EXPECT_TRUE(is_out_of_memory(c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "no more")));
  EXPECT_TRUE(is_out_of_memory(FullMemory("device cuda:1 has no memory left")));
  for (const char* words :
       {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "CUDA error: out of memory\nCUDA kernel errors might be reported later"})
    EXPECT_TRUE(is_out_of_memory(thrown(words))) << words;
  EXPECT_FALSE(is_out_of_memory(thrown("CUDA error: an illegal memory access was encountered")));
  EXPECT_FALSE(is_out_of_memory(Error("CUDA error: out of memory")));
}

TEST(DeviceErrors, AreSentencesOfOneLine) {
  const c10::Error error({__func__, __FILE__, __LINE__},
                         "CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA\n");
  EXPECT_EQ(sentence_of(error), "CUDA error: out of memory");
  EXPECT_EQ(sentence_of(Error("one\ntwo")), "one\ntwo");
  EXPECT_EQ(no_memory_left(error, simulated(1)),
            "device " + simulated(1).str() + " has no memory left");
  EXPECT_EQ(no_memory_left(FullMemory("another's"), simulated(1)), "another's");
}

/// Warns often of two operators, and returns what is printed.
std::string printed_warnings() {
  set_arithmetic({.deterministic = true});
  ::testing::internal::CaptureStderr();
  for (int call = 0; call < 3; ++call)
    for (const char* name : {"one operator", "another"})
      at::globalContext().alertNotDeterministic(name);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LibtorchWarnings, ArePrintedOnceByTheFirstRank) {
  warn_once(/*first_rank=*/true);
  const std::string printed = printed_warnings();
  EXPECT_EQ(std::ranges::count(printed, '\n'), 2) << printed;
  EXPECT_EQ(printed.find("libtorch warns: one operator does not have a deterministic"), 0);
  warn_once(/*first_rank=*/false);
  EXPECT_EQ(printed_warnings(), "");
}

}  // namespace
}  // namespace mpi4dl
