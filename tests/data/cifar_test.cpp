#include "data/cifar.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "base/random.hpp"
#include "support/test_images.hpp"

namespace mpi4dl {
namespace {

using testing::ScratchFolder;

constexpr int64_t kRecord = 3073;

/// Returns a byte of record i of a file: label i % 10, then bytes that depend on everything.
uint8_t byte_of(int64_t file, int64_t record, int64_t place) {
  return static_cast<uint8_t>(mix(static_cast<uint64_t>((file * 100 + record) * 4000 + place)));
}

void write_batch(const std::string& path, int64_t file, int64_t records) {
  std::ofstream out(path, std::ios::binary);
  for (int64_t i = 0; i < records; ++i) {
    out.put(static_cast<char>(i % 10));
    for (int64_t place = 1; place < kRecord; ++place)
      out.put(static_cast<char>(byte_of(file, i, place)));
  }
}

TEST(Cifar, ReadsRecordsOfAllFiles) {
  const ScratchFolder folder;
  write_batch(folder / "data_batch_1.bin", 1, 12);
  write_batch(folder / "data_batch_2.bin", 2, 5);
  write_batch(folder / "test_batch.bin", 3, 4);
  const DataParts parts = open_cifar(folder.path(), {}, Fit::exact);
  ASSERT_EQ(parts.training->size(), 17);
  ASSERT_EQ(parts.validation->size(), 4);
  EXPECT_EQ(parts.training->label(11), 1);
  EXPECT_EQ(parts.training->label(12), 0);
  EXPECT_EQ(parts.training->name(14), folder / "data_batch_2.bin:2");
  const at::Tensor part = parts.training->read(14, {{0, 1}, {1, 3}, {3, 9}, {30, 32}});
  for (int64_t c = 1; c < 3; ++c)
    for (int64_t y = 3; y < 9; ++y)
      for (int64_t x = 30; x < 32; ++x) {
        const float value = byte_of(2, 2, 1 + c * 1024 + y * 32 + x);
        EXPECT_EQ(part[c - 1][y - 3][x - 30].item<float>(), (value / 255.0F - 0.5F) / 0.5F);
      }
}

TEST(Cifar, IsShownAtOtherSizes) {
  const ScratchFolder folder;
  write_batch(folder / "data_batch_1.bin", 1, 1);
  for (const Fit fit : {Fit::pad, Fit::resize}) {
    const Cifar data({folder / "data_batch_1.bin"}, {48, 40}, fit);
    const at::Tensor whole = data.read(0, {{0, 1}, {0, 3}, {0, 48}, {0, 40}});
    const at::Tensor part = data.read(0, {{0, 1}, {0, 3}, {5, 20}, {17, 40}});
    EXPECT_TRUE(at::equal(part, whole.slice(1, 5, 20).slice(2, 17, 40)));
  }
  EXPECT_THROW(Cifar({folder / "data_batch_1.bin"}, {48, 40}, Fit::exact), UsageError);
}

TEST(Cifar, SaysWhatIsWrong) {
  const ScratchFolder folder;
  EXPECT_THROW(open_cifar(folder / "none", {}, Fit::exact), UsageError);
  EXPECT_THROW(open_cifar(folder.path(), {}, Fit::exact), UsageError);
  write_batch(folder / "data_batch_1.bin", 1, 1);
  EXPECT_THROW(open_cifar(folder.path(), {}, Fit::exact), UsageError);  // no test_batch.bin
  std::ofstream(folder / "test_batch.bin") << "short";
  EXPECT_THROW(open_cifar(folder.path(), {}, Fit::exact), UsageError);
  std::ofstream(folder / "data_batch_2.bin") << std::string(kRecord, '\xff');
  const Cifar data({folder / "data_batch_2.bin"}, {}, Fit::exact);
  EXPECT_THROW(data.label(0), Error);
}

}  // namespace
}  // namespace mpi4dl
