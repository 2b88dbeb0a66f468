#include "import/torchscript.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/limited_process.hpp"
#include "import/exported_program.hpp"

namespace mpi4dl {
namespace {

constexpr const char* kProgram = "mpi4dl-torchscript";
constexpr size_t kLongestSentence = 4000;

/// Finds the program that reads such files beside this one, or in the folder above.
std::string path_of_reader() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {here, here.parent_path()})
    if (std::filesystem::exists(folder / kProgram)) return folder / kProgram;
  throw Error(fmt::format("{} reads such files, and is not in {}", kProgram, here.string()));
}

/// Leaves the variables by which a system finds libraries, and sanitizers their settings.
std::vector<std::string> environment() {
  std::vector<std::string> kept{"OMP_NUM_THREADS=1"};
  for (const char* name : {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"})
    if (const char* value = std::getenv(name)) kept.push_back(fmt::format("{}={}", name, value));
  return kept;
}

/// Returns a sentence of the other process without what a terminal would take for a command.
std::string sentence(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' && c != '\n'; }, '?');
  return text.substr(0, kLongestSentence);
}

std::string as_memory(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
}

/// Returns what the other process has written. Throws where that is no program.
std::string output_of(ProcessResult result, const TorchScriptLimits& limits) {
  ensure(!result.timed_out && result.signal != SIGXCPU, "reading it took more than {:.0f} s",
         limits.seconds);
  ensure(!result.too_long, "its description has more than {} bytes", result.output.size());
  ensure(result.code != 3, "reading it needs more memory than {}", as_memory(limits.bytes));
  ensure(result.signal == 0, "the process that read it was ended by signal {} ({})", result.signal,
         signal_text(result.signal));
  validate(result.code != 2, "{}", sentence(result.output));
  ensure(result.code == 0, "{}", sentence(result.output));
  return std::move(result.output);
}

/// Throws where an archive is of another kind, which a file's name does not tell.
void check_kind(const ZipArchive& archive) {
  if (archive.find_ending("constants.pkl")) return;
  validate(!archive.find_ending("data.pkl"),
           "it holds weights (what torch.save writes of a state_dict) and no operators; give the "
           "model itself, and this file as its weights");
  validate(!archive.find_ending("models/model.json"),
           "torch.export has written it, not torch.jit; give it a name that ends with .pt2");
  throw UsageError(
      "it is no TorchScript file; write one with torch.jit.trace(model, image).save(file), or "
      "better a .pt2 file with torch.export.save");
}

Program read(const std::string& path, const Extents& image, const TorchScriptLimits& limits) {
  const ZipArchive archive(path);
  check_kind(archive);
  const std::vector<std::string> words{path_of_reader(),
                                       path,
                                       to_string(image),
                                       fmt::format("{:.0f}", std::max(limits.seconds, 1.0)),
                                       std::to_string(limits.bytes),
                                       std::to_string(getpid())};
  return read_described_program(
      output_of(run_limited(words, environment(), {.seconds = limits.seconds}), limits), archive);
}

/// Names the file in what an act on it throws.
template <typename Act>
auto naming(const std::string& path, const Act& act) {
  try {
    return act();
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("'{}' cannot be imported: {}", path, error.what()));
  } catch (const std::exception& error) {
    throw Error(fmt::format("'{}' cannot be read as TorchScript: {}", path, error.what()));
  }
}

}  // namespace

Program read_torchscript(const std::string& path, const Extents& image,
                         const TorchScriptLimits& limits) {
  return naming(path, [&] { return read(path, image, limits); });
}

void check_torchscript(const std::string& path) {
  naming(path, [&] { check_kind(ZipArchive(path)); });
}

}  // namespace mpi4dl
