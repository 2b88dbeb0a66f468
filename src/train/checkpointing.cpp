#include "train/checkpointing.hpp"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <sstream>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "comm/agreement.hpp"
#include "comm/collectives.hpp"

namespace mpi4dl {
namespace {

std::string value_of(const Manifest::Settings& settings, const std::string& flag) {
  const auto found = settings.find(flag);
  return found == settings.end() ? "nothing" : found->second;
}

/// Returns the first line in which two texts differ: its number, and what stands there in each.
std::tuple<int, std::string, std::string> first_difference(const std::string& one,
                                                           const std::string& other) {
  std::istringstream lines(one), other_lines(other);
  std::string line, other_line;
  int number = 0;
  do {
    line.clear();
    other_line.clear();
    std::getline(lines, line);
    std::getline(other_lines, other_line);
    ++number;
  } while (line == other_line && (lines || other_lines));
  return {number, line, other_line};
}

}  // namespace

Checkpointing::Checkpointing(CheckpointOptions options, Manifest::Settings must_match,
                             const Communicator& world, std::function<void(const std::string&)> say)
    : options_(std::move(options)),
      must_match_(std::move(must_match)),
      world_(world),
      say_(std::move(say)),
      folder_(options_.folder) {}

DataState Checkpointing::resume(Trainer& trainer) {
  const std::vector<int64_t> there = steps();
  validate(there.empty() || !options_.resume.empty(),
           "{} has checkpoints already, up to step {}; resume from there, or choose another folder",
           options_.folder, there.empty() ? 0 : there.back());
  if (options_.resume.empty()) return {};
  const bool automatic = options_.resume == "auto";
  if (automatic && there.empty()) {
    say_(fmt::format("no checkpoint in {} yet: training begins", options_.folder));
    return {};
  }
  const std::string chosen = automatic ? newest_whole(there) : find_checkpoint(options_.resume);
  if (!automatic) check_checkpoint(chosen, world_);
  const Checkpoint checkpoint(chosen);
  check_settings(checkpoint);
  const Manifest& manifest = checkpoint.manifest();
  validate(automatic || there.empty() || there.back() <= manifest.step,
           "{} has checkpoints of later steps, up to {}, than {}; remove them or choose another "
           "folder",
           options_.folder, there.empty() ? 0 : there.back(), chosen);
  load_checkpoint(checkpoint, trainer, world_);
  say_(fmt::format("going on behind step {} from {}", manifest.step, chosen));
  resumed_from_ = chosen;
  return manifest.data;
}

void Checkpointing::after_step(const Trainer& trainer, const DataState& done, int64_t steps,
                               bool last) {
  const auto [epoch, step] = done.position;
  if (!enabled() || !(last || options_.every.due(epoch, step, steps))) return;
  const std::pair now(trainer.steps(), done.position);
  if (std::exchange(saved_, now) == now) return;
  Manifest about;
  about.data = done;
  if (step == steps) about.data.position = {epoch + 1, 0};
  about.must_match = must_match_;
  about.classes = options_.classes;
  save_checkpoint(folder_, trainer, std::move(about), world_,
                  options_.model ? &*options_.model : nullptr);
  if (world_.rank() == 0) folder_.prune(trainer.steps(), options_.keep);
}

/// Returns them as the first rank sees them: file systems of other nodes may be a little late. A
/// folder that cannot be written to is found out now, not after hours of training.
std::vector<int64_t> Checkpointing::steps() const {
  std::vector<int64_t> found;
  if (!enabled()) return found;
  run_together(world_, [&] {
    if (world_.rank() != 0) return;
    folder_.begin(0);
    folder_.abandon(0);
    found = folder_.steps();
  });
  const auto count = all_gather(static_cast<int64_t>(found.size()), world_)[0];
  found.resize(count);
  if (count == 0) return found;
  at::Tensor all = at::from_blob(found.data(), {count}, at::kLong);
  broadcast(all, world_, 0);
  return found;
}

std::string Checkpointing::newest_whole(const std::vector<int64_t>& steps) const {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = folder_.checkpoint(*step);
    try {
      check_checkpoint(path, world_);
      return path;
    } catch (const Error& error) {
      say_(fmt::format("{} is damaged ({}){}", path, error.what(),
                       step + 1 == steps.rend() ? "" : ": trying the one before"));
    }
  }
  throw CommonError(fmt::format("no checkpoint in {} is whole", options_.folder));
}

void Checkpointing::check_settings(const Checkpoint& checkpoint) const {
  // What an older checkpoint does not mention cannot be compared.
  const bool by_graphs = options_.model && checkpoint.manifest().files.contains(kGraphFile);
  if (by_graphs) check_graph(checkpoint);
  for (const auto& [flag, then] : checkpoint.manifest().must_match) {
    // The same graph may be in another file.
    if (by_graphs && then == checkpoint.manifest().model) continue;
    const std::string now = value_of(must_match_, flag);
    validate(then == now,
             "{} was trained with {} {}, not {}; use that, or start anew from its weights",
             checkpoint.folder(), flag, then, now);
  }
  const std::vector<std::string>& classes = checkpoint.manifest().classes;
  validate(classes.empty() || options_.classes.empty() || classes == options_.classes,
           "{} was trained with the classes {}, not {}; use those images, or start anew from its "
           "weights",
           checkpoint.folder(), fmt::join(classes, ", "), fmt::join(options_.classes, ", "));
}

void Checkpointing::check_graph(const Checkpoint& checkpoint) const {
  const std::string then = checkpoint.graph().value(), &now = options_.model->graph;
  if (then == now) return;
  const auto [number, line, now_line] = first_difference(then, now);
  throw UsageError(
      fmt::format("{} was trained with another graph, whose line {} is '{}', not '{}'; use that, "
                  "or start anew from its weights",
                  checkpoint.folder(), number, line, now_line));
}

}  // namespace mpi4dl
