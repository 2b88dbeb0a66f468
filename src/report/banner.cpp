#include "report/banner.hpp"

#include <fmt/ranges.h>

#include <set>

#include "base/units.hpp"

namespace mpi4dl {
namespace {

std::string line(const std::string& about, const std::string& text) {
  return fmt::format("  {:<12} {}\n", about, text);
}

std::string counted(int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Counts images and the classes that occur, which may be fewer than the model knows.
std::string describe(const Dataset& images, int64_t classes) {
  std::set<int64_t> present;
  for (int64_t i = 0; i < images.size(); ++i) present.insert(images.label(i));
  const auto found = static_cast<int64_t>(present.size());
  return fmt::format("{} of {}", counted(images.size(), "image"),
                     found == classes ? fmt::format("{} class{}", classes, classes == 1 ? "" : "es")
                                      : fmt::format("{} of {} classes", found, classes));
}

std::string describe_training(const BannerFacts& facts) {
  const int64_t images = facts.data.training->size();
  const int64_t steps = images / facts.effective_batch;
  const int64_t left_over = images - steps * facts.effective_batch;
  std::string text =
      fmt::format("{}, {} of {} an epoch", describe(*facts.data.training, facts.classes),
                  counted(steps, "step"), counted(facts.effective_batch, "image"));
  if (left_over > 0)
    text += fmt::format("; {} left out of each, others each time", counted(left_over, "image"));
  return text;
}

std::string describe_validation(const BannerFacts& facts) {
  if (!facts.data.validation) return "nothing; " + facts.hints.hold_out_images;
  if (facts.eval_every == "never")
    return fmt::format("never; {} held out", counted(facts.data.validation->size(), "image"));
  return fmt::format("{}, every {}", describe(*facts.data.validation, facts.classes),
                     facts.eval_every.empty() ? "epoch" : facts.eval_every);
}

std::string describe_ranks(const BannerFacts& facts) {
  const Layout& layout = facts.layout;
  std::vector<int> sizes;
  for (const Grid& stage : layout.stages()) sizes.push_back(stage.size());
  std::string text = fmt::format("{}", fmt::join(sizes, " + "));
  if (layout.replicas() > 1) text = fmt::format("{} replicas of {}", layout.replicas(), text);
  text += fmt::format(", {} each", counted(facts.threads, "thread"));
  const bool added = facts.asked.stages.empty() && facts.asked.parallelism.empty() &&
                     facts.asked.split_size == 0 && sizes.size() > 1;
  if (added)
    text += fmt::format("; {} {} the layers behind the tiles, {}", counted(sizes.back(), "rank"),
                        sizes.back() == 1 ? "has" : "have", facts.hints.keep_layers_on_tiles);
  return text;
}

std::string describe_memory(const BannerFacts& facts) {
  const double most = mebibytes(facts.memory_bytes);
  if (facts.host_bytes == 0)
    return fmt::format("{:.0f} MiB expected for the rank that needs most", most);
  return fmt::format(
      "{:.0f} MiB expected on the device of the rank that needs most, {:.0f} MiB on its host", most,
      mebibytes(facts.host_bytes));
}

std::string describe_checkpoints(const BannerFacts& facts) {
  const CheckpointOptions& options = facts.checkpoints;
  if (options.folder.empty()) return "none; " + facts.hints.keep_checkpoints;
  return fmt::format(
      "in {}, every {}, the last {} kept", options.folder,
      counted(options.every.count, options.every.unit == Every::Unit::epochs ? "epoch" : "step"),
      options.keep);
}

}  // namespace

std::string banner(const BannerFacts& facts) {
  std::string text = line("train on", describe_training(facts));
  text += line("validate on", describe_validation(facts));
  if (!facts.fit.empty()) text += line("fit", facts.fit);
  text += line("ranks", describe_ranks(facts));
  text += line("memory", describe_memory(facts));
  return text + line("checkpoints", describe_checkpoints(facts));
}

}  // namespace mpi4dl
