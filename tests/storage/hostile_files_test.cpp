// Files of tensors that are made to do harm: each is refused with a sentence, and nothing in them
// runs.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.hpp"
#include "import/small_archive.hpp"
#include "storage/safetensors.hpp"
#include "storage/torch_file.hpp"
#include "support/dice.hpp"
#include "support/scratch_folder.hpp"

namespace mpi4dl {
namespace {

using testing::archive_bytes;
using testing::ArchiveEntry;

// Opcodes of a pickle.

std::string text(const std::string& letters) {
  const auto length = static_cast<uint32_t>(letters.size());
  return "X" + std::string(reinterpret_cast<const char*>(&length), 4) + letters;
}
std::string integer(int64_t value) {
  return "\x8a\x08" + std::string(reinterpret_cast<const char*>(&value), 8);
}
std::string repeat(const std::string& part, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += part;
  return all;
}
std::string integers(const std::vector<int64_t>& values) {
  std::string tuple = "(";
  for (const int64_t value : values) tuple += integer(value);
  return tuple + "t";
}

/// Returns a tensor of some record.
std::string tensor(const std::string& record, const std::vector<int64_t>& sizes,
                   const std::vector<int64_t>& strides, int64_t offset = 0) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" +
         text(record) + text("cpu") + "K\4tQ" + integer(offset) + integers(sizes) +
         integers(strides) + "tR";
}

/// Returns a state_dict of one tensor.
std::string state_dict(const std::string& value) {
  return "\x80\2}" + text("w") + value + "s.";
}

/// Returns an archive whose records 0 and 1 have 4 elements each.
std::string saved(const std::string& pickle) {
  return archive_bytes({{"archive/data.pkl", pickle},
                        {"archive/data/0", std::string(16, '\0')},
                        {"archive/data/1", std::string(16, '\0')}});
}

template <typename File>
std::string failure_of(const std::string& bytes) {
  const testing::ScratchFolder scratch;
  write_durably(scratch / "w", bytes);
  try {
    const File file(scratch / "w");
    for (const auto& [name, info] : file.tensors()) file.read(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

std::string failure_of_saved(const std::string& pickle) {
  return failure_of<TorchFile>(saved(pickle));
}

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text.substr(0, 500);
}

TEST(HostileTorchFile, ReadsASoundOne) {
  EXPECT_EQ(failure_of_saved(state_dict(tensor("0", {2, 2}, {2, 1}))), "no failure");
  EXPECT_EQ(failure_of_saved(state_dict(tensor("1", {2}, {1}, 2))), "no failure");
}

/// Python would run what these name.
TEST(HostileTorchFile, RunsNoCode) {
  const testing::ScratchFolder scratch;
  const std::string made = scratch / "made";
  for (const char* call : {"cos\nsystem\n", "cposix\nsystem\n", "csubprocess\ncall\n",
                           "c__builtin__\neval\n", "cbuiltins\nexec\n"}) {
    expect_says(failure_of_saved(state_dict(call + text("touch " + made) + "\x85R")),
                "save a state_dict alone");
    expect_says(failure_of_saved(call + text("touch " + made) + "\x85R."), "it holds an object of");
  }
  expect_says(
      failure_of_saved(text("os") + text("system") + "\x93" + text("touch " + made) + "\x85R."),
      "it holds an object of os.system");
  // INST, OBJ, NEWOBJ and EXT1 run code too.
  for (const char* opcode : {"i", "o", "\x81", "\x82"})
    expect_says(failure_of_saved("(cos\nsystem\n" + text("touch " + made) + opcode + "."),
                "occurs in no state_dict");
  EXPECT_FALSE(std::filesystem::exists(made));
}

TEST(HostileTorchFile, MayBeNestedDeeply) {
  expect_says(failure_of_saved(")" + repeat("\x85", 3'000'000) + "."), "it holds no state_dict");
  expect_says(failure_of_saved("]" + repeat("]a", 1'000'000) + "."), "it holds no state_dict");
}

/// Lists that hold themselves, and a dict that is its own value.
TEST(HostileTorchFile, MayHoldItself) {
  expect_says(failure_of_saved("]q\1h\1a."), "it holds no state_dict");
  expect_says(failure_of_saved("}q\1" + text("w") + "h\1s."), "its entry 'w' is no tensor");
}

TEST(HostileTorchFile, HasHugeCounts) {
  expect_says(failure_of_saved(repeat("N", 5'000'000) + "."), "more than 4000000 values");
  expect_says(failure_of_saved("}(" + repeat("h\1", 10) + "u."), "not built as a state_dict");
  expect_says(failure_of_saved("X\xff\xff\xff\xff."), "it ends too early");
  expect_says(failure_of_saved("}(" + repeat("N", 3'000'000) + "u."), "not built as a state_dict");
  expect_says(failure_of_saved(state_dict(
                  tensor("0", std::vector<int64_t>(1000, 1), std::vector<int64_t>(1000, 1)))),
              "it has a tensor of 1000 axes");
  expect_says(failure_of_saved(state_dict(tensor(std::string(100'000, '0'), {4}, {1}))),
              "it has a name of 100000 characters");
}

TEST(HostileTorchFile, HasTensorsThatDoNotLieInTheirStorage) {
  constexpr int64_t half = int64_t{1} << 62;
  expect_says(failure_of_saved(state_dict(tensor("2", {4}, {1}))), "values of w are not in it");
  expect_says(failure_of_saved(state_dict(tensor("/etc/passwd", {4}, {1}))),
              "values of w are not in it");
  expect_says(failure_of_saved(state_dict(tensor("../data.pkl", {4}, {1}))),
              "values of w are not in it");
  struct Wrong {
    std::vector<int64_t> sizes, strides;
    int64_t offset;
  };
  for (const Wrong& wrong : {Wrong{{5}, {1}, 0},
                             {{4}, {1}, 1},
                             {{4}, {1}, -1},
                             {{-4}, {1}, 0},
                             {{4}, {-1}, 3},
                             {{2}, {half}, 0},
                             {{half, half}, {1, 1}, 0},
                             {{half}, {4}, 0},
                             {{4}, {1}, INT64_MAX},
                             {{2, 2}, {1}, 0}})
    expect_says(failure_of_saved(state_dict(tensor("0", wrong.sizes, wrong.strides, wrong.offset))),
                "w is larger than its values");
  expect_says(failure_of_saved(state_dict(tensor("0", {int64_t{1} << 40}, {0}))),
              "w has elements that lie in one place");
}

TEST(HostileTorchFile, IsAnArchiveThatLies) {
  ArchiveEntry bomb{.name = "archive/data.pkl", .bytes = state_dict("N")};
  bomb.method = 8;
  expect_says(failure_of<TorchFile>(archive_bytes({bomb})), "is compressed");
  ArchiveEntry long_one{.name = "archive/data.pkl", .bytes = "}.", .said_bytes = 1 << 30};
  expect_says(failure_of<TorchFile>(archive_bytes({long_one})), "longer than the file");
  expect_says(failure_of<TorchFile>(archive_bytes({{"archive/other", "}."}})),
              "it has no entry 'data.pkl'");
}

/// Whatever bytes are changed, the pickle is read or refused with a sentence.
TEST(HostileTorchFile, SurvivesChangedBytes) {
  const std::string pickle = "\x80\2}(" + text("a") + tensor("0", {2, 2}, {2, 1}) + text("b") +
                             tensor("1", {4}, {1}) + "u.";
  for (uint64_t seed = 0; seed < 500; ++seed) {
    testing::Dice dice(seed);
    std::string changed = pickle;
    for (int64_t count = dice.pick(1, 6); count > 0; --count)
      changed[dice.pick(0, static_cast<int64_t>(pickle.size()) - 1)] =
          static_cast<char>(dice.pick(0, 255));
    failure_of_saved(changed);
  }
}

/// Returns a file with this header and 16 bytes of values.
std::string with_header(const std::string& header) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(16, '\0');
}

std::string failure_of_tensor(const std::string& shape, const std::string& place) {
  return failure_of<SafetensorsFile>(with_header(R"({"w": {"dtype": "F32", "shape": )" + shape +
                                                 R"(, "data_offsets": )" + place + "}}"));
}

TEST(HostileSafetensors, HasTensorsThatAreNotInTheFile) {
  EXPECT_EQ(failure_of_tensor("[2, 2]", "[0, 16]"), "no failure");
  for (const char* place : {"[0, 17]", "[1, 17]", "[-16, 0]", "[16, 0]", "[0, 16, 16]", "[]",
                            "[9223372036854775791, 9223372036854775807]",
                            "[-9223372036854775808, -9223372036854775792]"})
    expect_says(failure_of_tensor("[4]", place), "the place of 'w' is not in the file");
  for (const char* shape : {"[5]", "[-2, -2]", "[4611686018427387904, 4611686018427387904]",
                            "[4611686018427387905]", "[4, -1]"})
    expect_says(failure_of_tensor(shape, "[0, 16]"), "the place of 'w' is not in the file");
  expect_says(failure_of_tensor("[-1]", "[1, 0]"), "the place of 'w' is not in the file");
  for (const char* shape : {"[4.0]", "[1e300]", "[18446744073709551615]", "[\"4\"]", "[[4]]"})
    expect_says(failure_of_tensor(shape, "[0, 16]"), "is no whole number");
  expect_says(failure_of_tensor(std::string(1000, '[') + std::string(1000, ']'), "[0, 16]"),
              "nested more than 64 deep");
}

TEST(HostileSafetensors, HasAHeaderThatIsNone) {
  for (const char* header : {"", "{", "[]", "[3]", "3", "{\"w\": 3}", "{\"w\": {}}", "\xff\xfe"})
    expect_says(failure_of<SafetensorsFile>(with_header(header)), "is no safetensors file");
  std::string longer = with_header("{}");
  longer.replace(0, 8, "\xff\xff\xff\xff\xff\xff\xff\xff");
  expect_says(failure_of<SafetensorsFile>(longer), "its header is longer than the file");
}

/// Names are compared with each other: not each with each.
TEST(HostileSafetensors, MayHaveManyTensors) {
  std::string header = "{";
  for (int i = 0; i < 200'000; ++i)
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  const testing::ScratchFolder scratch;
  write_durably(scratch / "w", with_header(header + "}"));
  EXPECT_EQ(SafetensorsFile(scratch / "w").tensors().size(), 200'000);
}

}  // namespace
}  // namespace mpi4dl
