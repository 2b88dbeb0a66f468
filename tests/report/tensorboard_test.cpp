#include "report/tensorboard.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

TEST(Crc32c, OfTheStandardsExamples) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

/// The file is read back record by record: lengths and what follows them. The program's test
/// decodes all of it.
TEST(TensorBoardFile, IsMadeOfWholeRecords) {
  const std::string folder = ::testing::TempDir() + "tensorboard_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  {
    TensorBoardFile file(folder, 1);
    file.add(1, {{"train/loss", 2.5}, {"train/accuracy", 0.5}});
    file.add(300, {{"train/loss", 1.5}});
  }
  const auto found = std::filesystem::directory_iterator(folder)->path();
  std::ifstream in(found, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    bytes.copy(reinterpret_cast<char*>(&length), sizeof(length), at);
    events.push_back(bytes.substr(at + 12, length));
    at += 12 + length + 4;
    ASSERT_LE(at, bytes.size());
  }
  ASSERT_EQ(events.size(), 4U);
  EXPECT_NE(events[0].find("brain.Event:2"), std::string::npos);
  EXPECT_NE(events[2].find("train/accuracy"), std::string::npos);
  EXPECT_EQ(events[3].substr(9, 3), "\x10\xac\x02");  // step 300
}

TEST(TensorBoardFile, NeedsAFolder) {
  EXPECT_THROW(TensorBoardFile("/nowhere/at/all", 1), Error);
}

}  // namespace
}  // namespace mpi4dl
