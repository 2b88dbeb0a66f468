#include "train/checkpoint_folder.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "storage/durable_file.hpp"
#include "train/checkpoint.hpp"

namespace mpi4dl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial-";
constexpr std::string_view kDiscarded = ".discarded-";

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return {};
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || rest != end) return {};
  return step;
}

/// Calls a function of std::filesystem and turns its failure into a sentence.
template <typename Function>
void attempt(const char* what, const std::string& path, Function&& function) {
  std::error_code error;
  function(error);
  ensure(!error, "cannot {} '{}': {}", what, path, error.message());
}

}  // namespace

std::vector<int64_t> CheckpointFolder::steps() const {
  std::vector<int64_t> found;
  std::error_code error;
  if (!fs::exists(path_, error)) return found;
  fs::directory_iterator entries(path_, error);
  ensure(!error, "cannot read the folder '{}': {}", path_, error.message());
  for (const auto& entry : entries)
    if (const auto step = step_of(entry.path().filename())) found.push_back(*step);
  std::sort(found.begin(), found.end());
  return found;
}

std::string CheckpointFolder::checkpoint(int64_t step) const {
  return fmt::format("{}/{}{:08}", path_, kPrefix, step);
}

std::string CheckpointFolder::partial(int64_t step) const {
  return fmt::format("{}/{}{}{:08}", path_, kPartial, kPrefix, step);
}

void CheckpointFolder::begin(int64_t step) const {
  attempt("make the folder", path_, [&](auto& error) { fs::create_directories(path_, error); });
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPartial) && !name.starts_with(kDiscarded)) continue;
    attempt("remove", entry.path(), [&](auto& error) { fs::remove_all(entry.path(), error); });
  }
  attempt("make the folder", partial(step),
          [&](auto& error) { fs::create_directory(partial(step), error); });
}

/// A folder cannot be renamed to one that is there. Only a damaged one can be there: a whole one
/// would have been resumed.
void CheckpointFolder::publish(int64_t step) const {
  const std::string from = partial(step), to = checkpoint(step);
  sync_folder(from);
  if (fs::exists(to)) discard(step);
  attempt("rename", from, [&](auto& error) { fs::rename(from, to, error); });
  sync_folder(path_);
}

/// Removes it under another name: what is removed in part does not look like a checkpoint.
void CheckpointFolder::discard(int64_t step) const {
  const std::string old = checkpoint(step);
  const std::string aside = fmt::format("{}/{}{:08}", path_, kDiscarded, step);
  attempt("rename", old, [&](auto& error) { fs::rename(old, aside, error); });
  attempt("remove", aside, [&](auto& error) { fs::remove_all(aside, error); });
}

void CheckpointFolder::abandon(int64_t step) const noexcept {
  std::error_code ignored;
  fs::remove_all(partial(step), ignored);
}

void CheckpointFolder::prune(int64_t step, int64_t keep) const {
  std::vector<int64_t> older = steps();
  std::erase_if(older, [&](int64_t other) { return other > step; });
  for (int64_t i = 0; i + keep < static_cast<int64_t>(older.size()); ++i) discard(older[i]);
}

std::string find_checkpoint(const std::string& path) {
  if (fs::exists(fs::path(path) / kManifestFile)) return path;
  const CheckpointFolder folder(path);
  const std::vector<int64_t> steps = folder.steps();
  validate(!steps.empty(), "there is no checkpoint in '{}'", path);
  return folder.checkpoint(steps.back());
}

}  // namespace mpi4dl
