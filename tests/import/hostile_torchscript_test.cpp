// TorchScript files that are damaged or made to do harm: the process that reads them ends, this one
// says so in a sentence, and nothing else happens. MPI4DL_CASES=10 changes bytes of ten times as
// many.
#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "import/imported_model.hpp"
#include "import/torchscript.hpp"
#include "small_archive.hpp"
#include "storage/durable_file.hpp"
#include "support/dice.hpp"
#include "support/import_files.hpp"
#include "support/scratch.hpp"

namespace mpi4dl {
namespace {

using testing::archive_bytes;
using testing::ArchiveEntry;

constexpr const char* kForward =
    "  def forward(self: __torch__.Net, x: Tensor) -> Tensor:\n"
    "    return torch.relu(x)\n";

/// Returns the bytes of a literal, among which there may be zeros.
template <size_t bytes>
std::string text_of(const char (&literal)[bytes]) {
  return {literal, bytes - 1};
}

const std::string kProtocol = "\x80\x02";

/// Returns a pickle of a module of class Net with one attribute, `training`.
std::string module_pickle() {
  return kProtocol + text_of("c__torch__\nNet\nq\0)\x81}(X\x08\0\0\0training\x88ub.");
}

/// Returns a pickle of a Net whose state is a number, which __setstate__ gets.
std::string state_pickle() {
  return kProtocol + text_of("c__torch__\nNet\nq\0)\x81K\x03") + "b.";
}

std::string module_code(const std::string& methods) {
  return "class Net(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n" +
         methods;
}

/// Returns the code of a method that is run while the module is loaded.
std::string when_loaded(const std::string& lines) {
  return module_code(std::string(kForward) +
                     "  def __getstate__(self: __torch__.Net) -> int:\n    return 3\n"
                     "  def __setstate__(self: __torch__.Net, state: int) -> NoneType:\n"
                     "    self.training = True\n" +
                     lines + "    return None\n");
}

std::string torchscript(const std::string& pickle, const std::string& code) {
  return archive_bytes({{"net/data.pkl", pickle},
                        {"net/code/__torch__.py", code},
                        {"net/constants.pkl", kProtocol + ")."},
                        {"net/version", "3\n"}});
}

/// Returns what is said of a file in which these bytes are; "no failure" where it was read.
std::string failure(const std::string& bytes, const TorchScriptLimits& limits = {}) {
  const testing::Scratch scratch;
  const std::string path = scratch / "net.pt";
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    read_torchscript(path, {8, 8}, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(HostileTorchScript, TheFilesBelowAreSoundButForWhatTheyDo) {
  EXPECT_EQ(failure(torchscript(module_pickle(), module_code(kForward))), "no failure");
  EXPECT_EQ(failure(torchscript(state_pickle(), when_loaded(""))), "no failure");
}

TEST(HostileTorchScript, CodeInPicklesIsNotExecuted) {
  const testing::Scratch scratch;
  const std::string mark = scratch / "mark", command = "touch " + mark;
  for (const char* global : {"os\nsystem", "posix\nsystem", "builtins\neval"}) {
    const std::string length(1, static_cast<char>(command.size()));
    const std::string pickle =
        kProtocol + "c" + global + "\n(X" + length + std::string(3, '\0') + command + "tR.";
    EXPECT_NE(failure(torchscript(pickle, module_code(kForward))), "no failure");
    EXPECT_FALSE(std::filesystem::exists(mark));
  }
}

TEST(HostileTorchScript, FilesAreNeitherWrittenNorRead) {
  const testing::Scratch scratch;
  const std::string mark = scratch / "mark";
  failure(torchscript(state_pickle(), when_loaded("    torch.save(state, \"" + mark + "\")\n")));
  EXPECT_FALSE(std::filesystem::exists(mark));
  std::ofstream(mark) << std::string(64, 'x');
  const std::string read = "    t = torch.from_file(\"" + mark + "\", False, 16)\n" +
                           "    self.training = torch.gt(torch.size(t, 0), 0)\n";
  expect_says(failure(torchscript(state_pickle(), when_loaded(read))), "cannot load it");
}

TEST(HostileTorchScript, AnEndlessLoopEnds) {
  const std::string loop =
      "    i = 0\n    _1 = True\n    while _1:\n      i0 = torch.remainder(torch.add(i, 1), 9)\n"
      "      _1, i = torch.ge(i0, 0), i0\n";
  expect_says(failure(torchscript(state_pickle(), when_loaded(loop)), {.seconds = 2}),
              "took more than 2 s");
}

TEST(HostileTorchScript, WhatNeedsTooMuchMemoryEnds) {
  const std::string huge =
      "    t = torch.zeros([1099511627776], dtype=6)\n"
      "    self.training = torch.gt(torch.size(t, 0), 0)\n";
#if !defined(__SANITIZE_ADDRESS__)
  expect_says(failure(torchscript(state_pickle(), when_loaded(huge))), "needs more memory than");
#endif
}

TEST(HostileTorchScript, WhatCannotBeKnownIsRefusedWithItsPlace) {
  const auto refusal = [](const std::string& body, const std::string& arguments = "x: Tensor") {
    return failure(torchscript(module_pickle(), module_code("  def forward(self: __torch__.Net, " +
                                                            arguments + ") -> Tensor:\n" + body)));
  };
  expect_says(refusal("    if bool(torch.gt(torch.sum(x), 0)):\n      y = torch.relu(x)\n"
                      "    else:\n      y = x\n    return y\n"),
              "depends on values");
  expect_says(refusal("    return torch.add(x, z)\n", "x: Tensor, z: Tensor"),
              "several inputs, x and z");
  expect_says(refusal("    ops.prim.RaiseException(\"not today\")\n    return x\n"), "not today");
  expect_says(refusal("    return torch.frobnicate(x)\n"), "Unknown builtin op");
}

/// Returns what is said of a module whose weight is read from the file, and then made another one.
std::string failure_where_loaded(const std::string& weight) {
  const testing::Scratch scratch;
  const std::string path = scratch / "net.pt";
  torch::jit::Module module("__torch__.Net");
  module.register_attribute("weight", c10::TensorType::get(), torch::ones({4, 3, 2, 2}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(
      "def forward(self, x: Tensor) -> Tensor:\n  return torch.conv2d(x, self.weight)\n"
      "def __getstate__(self) -> Tensor:\n  return self.weight\n"
      "def __setstate__(self, state: Tensor) -> None:\n"
      "  self.training = True\n  self.weight = " +
      weight + "\n");
  module.save(path);
  try {
    read_torchscript(path, {8, 8});
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

TEST(HostileTorchScript, ValuesThatCodeMakesAreNotThoseOfTheFile) {
  EXPECT_EQ(failure_where_loaded("state"), "no failure");
  for (const char* made : {"state * 2", "state.mul_(2)", "torch.ones([4, 3, 2, 2])"})
    expect_says(failure_where_loaded(made), "the values of weight are not in the file");
}

/// Returns what is said of a module that has a tensor `center`, and this forward.
std::string failure_with_center(const std::string& forward) {
  const testing::Scratch scratch;
  const std::string path = scratch / "net.pt";
  torch::jit::Module module("__torch__.Net");
  module.register_buffer("center", torch::ones({3, 1, 1}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define("def forward(self, x: Tensor) -> Tensor:\n" + forward);
  module.save(path);
  try {
    import_model(path, {.image = {8, 8}});
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

TEST(HostileTorchScript, WhatForwardKeepsForTheNextTimeIsRefused) {
  expect_says(failure_with_center("  y = x - self.center\n  self.center = self.center * 0.9\n"
                                  "  return y\n"),
              "it changes center whenever the model is called, and reads it");
  expect_says(failure_with_center("  y = x - self.center\n  self.center.mul_(0.9)\n"
                                  "  return y\n"),
              "it changes center, on which the result depends");
  EXPECT_EQ(failure_with_center("  self.center = x * 0.9\n  return self.center + 1\n"),
            "no failure");
}

Program program_of(const std::string& forward) {
  const testing::Scratch scratch;
  const std::string path = scratch / "net.pt";
  std::ofstream(path, std::ios::binary) << torchscript(module_pickle(), module_code(forward));
  return read_torchscript(path, {8, 9});
}

std::vector<std::string> targets(const Program& program) {
  std::vector<std::string> found;
  for (const Call& call : program.calls) found.push_back(call.target);
  return found;
}

TEST(MadeTorchScript, TheFirstOfSeveralResultsIsTaken) {
  const Program tuple = program_of(
      "  def forward(self: __torch__.Net, x: Tensor) -> Tuple[Tensor, Tensor]:\n"
      "    y = torch.relu(x)\n    return (torch.tanh(y), y)\n");
  EXPECT_EQ(tuple.result, "tanh");
  EXPECT_TRUE(tuple.more_results);
  const Program dictionary = program_of(
      "  def forward(self: __torch__.Net, x: Tensor) -> Dict[str, Tensor]:\n"
      "    y = torch.relu(x)\n    return {\"out\": torch.tanh(y), \"aux\": y}\n");
  EXPECT_EQ(dictionary.result, "tanh");
  EXPECT_TRUE(dictionary.more_results);
}

/// Branches and loops follow sizes, which those of the image are.
TEST(MadeTorchScript, SizesDecide) {
  const Program program = program_of(
      "  def forward(self: __torch__.Net, x: Tensor, times: int=2) -> Tensor:\n"
      "    y = x\n    for i in range(times):\n      y0 = torch.tanh(y)\n      y = y0\n"
      "    if torch.lt(torch.size(y, 2), torch.size(y, 3)):\n      z = torch.relu(y)\n"
      "    else:\n      z = torch.sigmoid(y)\n    return z\n");
  EXPECT_EQ(targets(program), (std::vector<std::string>{"tanh", "tanh", "relu"}));
}

/// What is asked for the size of a value that cannot be imported ends there, and that is told.
TEST(MadeTorchScript, SizesOfWhatIsNotKnownNameIt) {
  const Program program = program_of(
      "  def forward(self: __torch__.Net, x: Tensor) -> Tensor:\n"
      "    y = torch.cumsum(torch.relu(x), 2)\n"
      "    return torch.view(y, [torch.size(y, 0), -1])\n");
  EXPECT_EQ(targets(program), (std::vector<std::string>{"relu", "cumsum"}));
  EXPECT_EQ(program.result, "cumsum");
}

TEST(HostileTorchScript, OtherKindsOfFilesAreNamed) {
  expect_says(failure("text"), "no zip archive");
  expect_says(failure(archive_bytes({{"net/data.pkl", "x"}})), "holds weights");
  expect_says(failure(archive_bytes({{"net/a", "x"}})), "is no TorchScript file");
  expect_says(failure(testing::model_archive(testing::model_json())), "ends with .pt2");
}

/// Whatever bytes are changed, the file is read or refused with a sentence.
TEST(HostileTorchScript, SurvivesChangedBytes) {
  const std::string whole = read_text(import_file("squeeze_excite.trace.pt"));
  const auto last = static_cast<int64_t>(whole.size()) - 1;
  int refused = 0;
  for (const uint64_t seed : testing::seeds(32)) {
    testing::Dice dice(seed);
    std::string changed = whole;
    for (int64_t count = dice.pick(1, 20); count > 0; --count)
      changed[dice.pick(0, last)] = static_cast<char>(dice.pick(0, 255));
    refused += failure(changed, {.seconds = 20}) == "no failure" ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
}

/// Returns the entries of a file of TorchScript, whose code PyTorch compresses, as they are read.
std::vector<ArchiveEntry> entries_of(const std::string& path) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  std::vector<ArchiveEntry> entries;
  for (const std::string& name : reader.getAllRecords()) {
    const auto [bytes, size] = reader.getRecord(name);
    entries.push_back({"net/" + name, {static_cast<const char*>(bytes.get()), size}});
  }
  return entries;
}

/// Returns an archive of these entries, of which one that is no tensor's has other bytes.
std::string with_changed_entry(std::vector<ArchiveEntry> entries, testing::Dice& dice) {
  std::vector<std::string*> open;
  for (ArchiveEntry& entry : entries)
    if (!entry.bytes.empty() && entry.name.find("/data/") == std::string::npos)
      open.push_back(&entry.bytes);
  std::string& bytes = *open[dice.pick(0, std::ssize(open) - 1)];
  for (int64_t count = dice.pick(1, 4); count > 0; --count)
    bytes[dice.pick(0, std::ssize(bytes) - 1)] = static_cast<char>(dice.pick(0, 255));
  return archive_bytes(entries);
}

/// Checksums are right here, so that libtorch gets what was changed: pickles and code of a small
/// file, and of one that PyTorch wrote.
TEST(HostileTorchScript, SurvivesOtherPicklesAndCode) {
  const std::vector<ArchiveEntry> small{{"net/data.pkl", module_pickle()},
                                        {"net/code/__torch__.py", module_code(kForward)},
                                        {"net/constants.pkl", kProtocol + ")."},
                                        {"net/version", "3\n"}};
  const std::vector<ArchiveEntry> large = entries_of(import_file("squeeze_excite.trace.pt"));
  EXPECT_EQ(failure(archive_bytes(large)), "no failure");
  for (const uint64_t seed : testing::seeds(16)) {
    testing::Dice dice(seed);
    failure(with_changed_entry(seed % 2 == 0 ? small : large, dice), {.seconds = 20});
  }
}

}  // namespace
}  // namespace mpi4dl
