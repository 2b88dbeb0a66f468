// Tensors survive the way to a disk and back, what is not a file of tensors is refused, and what
// cannot be written leaves nothing but a reason.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "base/append_file.hpp"
#include "base/error.hpp"
#include "base/stop_signal.hpp"
#include "storage/folder_lock.hpp"
#include "storage/replacement_file.hpp"
#include "storage/safetensors.hpp"
#include "storage/state_dict_pickle.hpp"
#include "storage/torch_file.hpp"
#include "support/scratch.hpp"

namespace mpi4dl {
namespace {

const std::vector<c10::ScalarType> kTypes{at::kDouble, at::kFloat, at::kHalf, at::kBFloat16,
                                          at::kLong,   at::kInt,   at::kByte};

TensorMap samples() {
  TensorMap tensors;
  for (const c10::ScalarType type : kTypes) {
    const std::string name = c10::toString(type);
    tensors["channels.last." + name] = at::arange(2 * 3 * 4 * 5)
                                           .view({2, 3, 4, 5})
                                           .to(type)
                                           .contiguous(at::MemoryFormat::ChannelsLast);
    tensors["transposed." + name] = at::arange(6).view({2, 3}).to(type).t();
    tensors["number." + name] = at::ones({}, type);
    tensors["nothing." + name] = at::zeros({0, 3}, type);
  }
  return tensors;
}

void expect_same(const TensorSource& found, const TensorMap& expected) {
  ASSERT_EQ(found.tensors().size(), expected.size());
  for (const auto& [name, values] : expected) {
    const TensorInfo info{values.scalar_type(), values.sizes().vec()};
    ASSERT_TRUE(found.tensors().at(name) == info) << name;
    EXPECT_TRUE(at::equal(found.read(name), values)) << name;
    EXPECT_TRUE(found.read(name).is_contiguous()) << name;
  }
}

std::string failure(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

TEST(Safetensors, KeepsTypesShapesAndValues) {
  const testing::Scratch scratch;
  const Digest digest = write_safetensors(scratch / "a", samples());
  EXPECT_EQ(digest, digest_of(scratch / "a"));
  expect_same(SafetensorsFile(scratch / "a"), samples());
}

TEST(Safetensors, TensorsBeginAtAMultipleOfEight) {
  const testing::Scratch scratch;
  write_safetensors(scratch / "a", {{"x", at::ones({3})}});
  EXPECT_EQ(file_size(scratch / "a") % 8, 3 * 4 % 8);
}

TEST(Safetensors, RefusesWhatIsNone) {
  const testing::Scratch scratch;
  write_safetensors(scratch / "whole", {{"x", at::ones({64})}});
  const std::string whole = read_text(scratch / "whole");
  for (size_t length = 0; length < whole.size(); ++length) {
    write_durably(scratch / "cut", whole.substr(0, length));
    EXPECT_NE(failure([&] { SafetensorsFile(scratch / "cut"); }).find("is no safetensors file"),
              std::string::npos)
        << length;
  }
}

TEST(TorchFile, KeepsTypesShapesAndValues) {
  const testing::Scratch scratch;
  write_torch_file(scratch / "a.pt", samples());
  expect_same(TorchFile(scratch / "a.pt"), samples());
}

TEST(TorchFile, RefusesWhatIsNone) {
  const testing::Scratch scratch;
  write_durably(scratch / "a.pt", "PK, but no archive");
  EXPECT_NE(failure([&] { TorchFile(scratch / "a.pt"); }).find("is no file of torch.save"),
            std::string::npos);
}

TEST(StateDictPickle, RefusesCodeAndOtherObjects) {
  using std::string_view_literals::operator""sv;
  // os.system("true"), in the form that runs it when Python reads it.
  EXPECT_EQ(failure([] {
              read_state_dict(
                  "\x80\x02"
                  "cos\nsystem\nX\x04\0\0\0true\x85R."sv);
            }),
            "it holds an object of os.system; save a state_dict alone");
  EXPECT_EQ(failure([] { read_state_dict("\x80\x02}X\x01\0\0\0zK\x01s."sv); }),
            "its entry 'z' is no tensor; save a state_dict alone");
  EXPECT_EQ(failure([] { read_state_dict("\x80\x02}X\x01\0\0\0z"sv); }), "it ends too early");
  EXPECT_EQ(failure([] { read_state_dict("\x80\x02K\x01."sv); }), "it holds no state_dict");
  EXPECT_EQ(failure([] { read_state_dict("s"sv); }), "it is not built as a state_dict");
}

TEST(DurableFile, SaysWhatFailed) {
  EXPECT_EQ(failure([] { DurableFile("/nowhere/file"); }),
            "cannot create '/nowhere/file': No such file or directory");
  EXPECT_EQ(failure([] { write_durably("/dev/full", "text"); }),
            "cannot write '/dev/full': No space left on device");
}

/// While it lives, no file may become longer than so many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ignore_file_size_signal();
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(TorchFile, SaysWhatFailedWhereverThatIs) {
  const testing::Scratch scratch;
  write_torch_file(scratch / "whole", samples());
  const int64_t size = file_size(scratch / "whole");
  for (int64_t bytes = 0; bytes < size; bytes += size / 50) {
    const FileSizeLimit limit(bytes);
    EXPECT_EQ(failure([&] { write_torch_file(scratch / "cut", samples()); }),
              "cannot write '" + (scratch / "cut") + "': File too large")
        << bytes;
  }
}

TEST(ReplacementFile, ReplacesAllOrNothing) {
  const testing::Scratch scratch;
  replace_file(scratch / "a", "old");
  {
    const FileSizeLimit limit(4);
    EXPECT_EQ(failure([&] { replace_file(scratch / "a", "new text"); }),
              "cannot write '" + (scratch / "a.partial") + "': File too large");
  }
  EXPECT_EQ(read_text(scratch / "a"), "old");
  EXPECT_FALSE(std::filesystem::exists(scratch / "a.partial"));
  replace_file(scratch / "a", "new text");
  EXPECT_EQ(read_text(scratch / "a"), "new text");
}

TEST(ReplacementFile, WritesToADeviceItself) {
  replace_file("/dev/null", "text");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_FALSE(std::filesystem::exists("/dev/null.partial"));
}

TEST(UnfinishedFile, IsRemovedForASignal) {
  const testing::Scratch scratch;
  UnfinishedFile file(scratch / "a");
  write_durably(file.partial(), "half");
  write_durably(scratch / "b", "whole");
  remove_unfinished_files();
  EXPECT_FALSE(std::filesystem::exists(file.partial()));
  EXPECT_TRUE(std::filesystem::exists(scratch / "b"));
}

TEST(AppendFile, LeavesNoPartOfARecord) {
  const testing::Scratch scratch;
  {
    AppendFile file(scratch / "a", AppendFile::Start::empty);
    file.append("one\n");
    const FileSizeLimit limit(6);
    EXPECT_EQ(failure([&] { file.append("two\n"); }),
              "cannot write '" + (scratch / "a") + "': File too large");
  }
  EXPECT_EQ(read_text(scratch / "a"), "one\n");
  AppendFile(scratch / "a", AppendFile::Start::end).append("three\n");
  EXPECT_EQ(read_text(scratch / "a"), "one\nthree\n");
}

TEST(FolderLock, KeepsOthersOutAndSaysWhoHasIt) {
  const testing::Scratch scratch;
  {
    const FolderLock first("--flag", scratch / "new", ".lock");
    EXPECT_EQ(first.weakness(), "");
    const FolderLock other("--flag", scratch / "new", ".other");
    const std::string sentence = failure([&] { FolderLock("--flag", scratch / "new", ".lock"); });
    EXPECT_NE(sentence.find(
                  fmt::format("--flag {} is in use by process {} on ", scratch / "new", getpid())),
              std::string::npos)
        << sentence;
  }
  const FolderLock again("--flag", scratch / "new", ".lock");
}

}  // namespace
}  // namespace mpi4dl
