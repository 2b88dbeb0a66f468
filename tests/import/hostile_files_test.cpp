// Files that are damaged, or made to do harm: each is refused with a sentence.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "base/error.hpp"
#include "import/imported_model.hpp"
#include "small_archive.hpp"
#include "storage/durable_file.hpp"
#include "storage/zip_archive.hpp"
#include "support/dice.hpp"
#include "support/import_files.hpp"
#include "support/scratch.hpp"

namespace mpi4dl {
namespace {

using testing::archive_bytes;
using testing::ArchiveEntry;
using testing::model_archive;
using testing::model_json;

std::string write(const testing::Scratch& scratch, const std::string& bytes) {
  const std::string path = scratch / "net.pt2";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string failure(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

std::string archive_failure(const std::string& bytes) {
  const testing::Scratch scratch;
  const std::string path = write(scratch, bytes);
  return failure([&] {
    const ZipArchive archive(path);
    for (const auto& [name, entry] : archive.entries()) archive.read(name, 1 << 20);
  });
}

std::string import_failure(const std::string& bytes) {
  const testing::Scratch scratch;
  const std::string path = write(scratch, bytes);
  return failure([&] { import_model(path, {.image = {4, 4}}); });
}

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(ZipArchive, ReadsEntriesByName) {
  const testing::Scratch scratch;
  const ZipArchive archive(write(scratch, archive_bytes({{"net/a", "one"}, {"net/b/c", ""}})));
  EXPECT_EQ(archive.read("net/a", 3), "one");
  EXPECT_EQ(archive.read("net/b/c", int64_t{0}), "");
  EXPECT_EQ(archive.find_ending("b/c"), "net/b/c");
  EXPECT_EQ(archive.find("net/d"), nullptr);
}

TEST(ZipArchive, ReadsAnArchiveWithinAFile) {
  const testing::Scratch scratch;
  const std::string inner = archive_bytes({{"a", "inner"}});
  const ZipArchive outer(write(scratch, archive_bytes({{"first", "x"}, {"saved", inner}})));
  const ZipEntry* place = outer.find("saved");
  EXPECT_EQ(ZipArchive(outer.path(), place->begin, place->bytes).read("a", 5), "inner");
}

TEST(ZipArchive, RefusesEntriesThatAreNotWhereTheySay) {
  expect_says(archive_failure(archive_bytes({{"a", "text", /*said_bytes=*/1 << 20}})),
              "longer than the file");
  expect_says(archive_failure(archive_bytes({{"a", "text", -1, /*said_place=*/2}})),
              "not where its directory says");
  expect_says(archive_failure(archive_bytes({{"a", "text", -1, /*said_place=*/1 << 20}})),
              "not in the file");
  expect_says(archive_failure(archive_bytes({{"a", "text"}, {"a", "text"}})), "two entries 'a'");
  ArchiveEntry other{.name = "b", .bytes = "text"};
  other.name_in_header = "c";
  expect_says(archive_failure(archive_bytes({other})), "another name in its header");
  ArchiveEntry wider{.name = "a", .bytes = "text", .said_bytes = 20};
  expect_says(archive_failure(archive_bytes({wider, {"b", "text"}})), "overlap");
}

TEST(ZipArchive, RefusesNamesThatLeadOut) {
  for (const char* name : {"/etc/passwd", "../a", "net/../../a", "net/..", "net\\a"})
    expect_says(archive_failure(archive_bytes({{name, "text"}})), "leads out of the archive");
}

TEST(ZipArchive, DoesNotReadCompressedEntries) {
  ArchiveEntry entry{.name = "a", .bytes = "text"};
  entry.method = 8;
  expect_says(archive_failure(archive_bytes({entry})), "is compressed");
}

TEST(ZipArchive, NoticesEveryTruncationAndFlippedBit) {
  const std::string whole = archive_bytes({{"a", "some text"}, {"b", "other text"}});
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(archive_failure(whole.substr(0, bytes)), "no failure") << bytes;
  std::string flipped = whole;
  flipped[34] ^= 1;
  expect_says(archive_failure(flipped), "checksum");
}

TEST(ZipArchive, RefusesHugeCounts) {
  std::string bytes = archive_bytes({{"a", "text"}});
  bytes.replace(bytes.size() - 12, 2, "\xff\xfe");
  EXPECT_NE(archive_failure(bytes), "no failure");
}

TEST(ExportedProgram, ReadsASmallOne) {
  EXPECT_EQ(import_failure(model_archive(model_json())), "no failure");
}

TEST(ExportedProgram, RefusesJsonThatIsNone) {
  expect_says(import_failure(model_archive("{")), "is no JSON");
  expect_says(import_failure(model_archive("[]")), "no sound exported program");
  expect_says(import_failure(model_archive(std::string(100000, '['))), "deep");
}

/// An empty list takes two letters of a text, and 56 bytes of memory.
TEST(ExportedProgram, RefusesJsonThatTakesAllMemory) {
  std::string lists = "[";
  for (int i = 0; i < 10'000'000; ++i) lists += "[],";
  expect_says(import_failure(model_archive(lists + "[]]")), "has values for more than 512 MiB");
}

std::string relu_of(const std::string& input, const std::string& output) {
  return R"({"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg":
      {"as_tensor": {"name": ")" +
         input + R"("}}}], "outputs": [{"as_tensor": {"name": ")" + output +
         R"("}}], "metadata": {}})";
}

TEST(ExportedProgram, RefusesValuesOutOfOrder) {
  expect_says(
      import_failure(model_archive(model_json(relu_of("z", "y") + "," + relu_of("y", "z")))),
      "reads 'z' before it is made");
  expect_says(import_failure(model_archive(model_json(relu_of("y", "y")))),
              "reads 'y' before it is made");
  expect_says(
      import_failure(model_archive(model_json(relu_of("x", "y") + "," + relu_of("x", "y")))),
      "two values are named 'y'");
  expect_says(import_failure(model_archive(model_json(relu_of("x", "z")))),
              "'y' is made by no call");
}

TEST(ExportedProgram, RefusesSeveralModels) {
  expect_says(
      import_failure(archive_bytes({{"net/models/a.json", "{}"}, {"net/models/b.json", "{}"}})),
      "it holds 2 models");
  expect_says(import_failure(archive_bytes({{"net/data.pkl", "text"}})), "no exported program");
}

/// Describes a tensor of 4 elements, which its file has, as one of other sizes and strides.
std::string tensor_failure(const std::string& sizes, const std::string& strides,
                           const std::string& offset) {
  const std::string config = R"({"config": {"w": {"path_name": "weight_0", "use_pickle": false,
      "tensor_meta": {"dtype": 7, "layout": 7, "requires_grad": true, "sizes": [)" +
                             sizes + R"(], "strides": [)" + strides +
                             R"(], "storage_offset": {"as_int": )" + offset + "}}}}}";
  return import_failure(
      archive_bytes({{"net/models/model.json", model_json()},
                     {"net/data/weights/model_weights_config.json", config},
                     {"net/data/weights/weight_0", std::string(16, '\0')},
                     {"net/data/constants/model_constants_config.json", R"({"config": {}})"}}));
}

TEST(ExportedProgram, RefusesTensorsThatDoNotLieInTheirStorage) {
  const std::string four = R"({"as_int": 4})", one = R"({"as_int": 1})", zero = R"({"as_int": 0})";
  EXPECT_EQ(tensor_failure(four, one, "0"), "no failure");
  expect_says(tensor_failure(four, one, "1"), "w is larger than its values");
  expect_says(tensor_failure(four, one, "-1"), "w is larger than its values");
  expect_says(tensor_failure(R"({"as_int": 5})", one, "0"), "w is larger than its values");
  expect_says(tensor_failure(R"({"as_int": 5})", zero, "0"), "lie in one place");
  expect_says(tensor_failure(R"({"as_int": 4611686018427387904}, {"as_int": 4611686018427387904})",
                             one + "," + one, "0"),
              "w is larger than its values");
  expect_says(tensor_failure(R"({"as_int": -4})", one, "0"), "is no number");
  expect_says(tensor_failure(four, one + "," + one, "0"), "w is larger than its values");
}

/// Whatever bytes are changed, the file is read or refused with a sentence.
TEST(ExportedProgram, SurvivesChangedBytes) {
  const std::string whole = read_text(import_file("squeeze_excite.pt2"));
  for (const uint64_t seed : testing::seeds(200)) {
    testing::Dice dice(seed);
    std::string changed = whole;
    for (int64_t count = dice.pick(1, 20); count > 0; --count)
      changed[dice.pick(0, static_cast<int64_t>(whole.size()) - 1)] =
          static_cast<char>(dice.pick(0, 255));
    import_failure(changed);
  }
}

/// Returns an archive of the same entries, of which one has other bytes and the checksum of these.
std::string with_entry(const ZipArchive& archive, const std::string& changed,
                       const std::string& bytes) {
  std::vector<ArchiveEntry> entries;
  for (const auto& [name, entry] : archive.entries())
    entries.push_back({name, name == changed ? bytes : archive.read(name, 1 << 24)});
  return archive_bytes(entries);
}

/// Whatever digits, letters and signs of the model are others, it is imported or refused.
TEST(ExportedProgram, SurvivesAnotherModelInTheFile) {
  for (const char* file : {"squeeze_excite.pt2", "shuffle.dynamic.pt2", "tied.pt2"}) {
    const ZipArchive archive(import_file(file));
    const std::string name = archive.name_ending("models/model.json");
    const std::string model = archive.read(name, 1 << 24), signs = "0123456789-{}[]\",:aetx._";
    for (const uint64_t seed : testing::seeds(100)) {
      testing::Dice dice(seed);
      std::string changed = model;
      for (int64_t count = dice.pick(1, 5); count > 0; --count)
        changed[dice.pick(0, static_cast<int64_t>(model.size()) - 1)] =
            signs[dice.pick(0, static_cast<int64_t>(signs.size()) - 1)];
      import_failure(with_entry(archive, name, changed));
    }
  }
}

}  // namespace
}  // namespace mpi4dl
