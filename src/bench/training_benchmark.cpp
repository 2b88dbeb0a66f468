#include "bench/training_benchmark.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backend/backend.hpp"
#include "backend/device.hpp"
#include "comm/collectives.hpp"
#include "comm/node/resident_bytes.hpp"

namespace mpi4dl {
namespace {

/// Returns the flags of mpi4dl-baseline: the same model, all images of a step at once, on the
/// device of the first rank and as exactly as that computes.
std::vector<std::string> baseline_flags(const TrainingBenchmarkOptions& options,
                                        const at::Device& device) {
  std::vector<std::string> words{"--gemm-dtype", options.gemm_dtype, "--device", device.str()};
  if (multiplies_tf32()) words.emplace_back("--tf32");
  if (options.against != Against::baseline) return words;
  const ModelOptions& model = options.model;
  const auto add = [&](const std::string& flag, const auto& value) {
    words.push_back(flag);
    words.push_back(fmt::format("{}", value));
  };
  add("--model", model.name);
  add("--resnet-version", model.resnet_version);
  add("--depth", model.depth);
  if (model.global_pool_head) words.emplace_back("--global-pool-head");
  add("--num-layers", model.num_layers);
  add("--num-filters", model.num_filters);
  add("--num-classes", model.classes);
  add("--height", model.image[0]);
  add("--width", model.image[1]);
  add("--batch-size", options.batch.effective());
  add("--dtype", options.baseline_dtype);
  return words;
}

double pixels(const Graph& graph) {
  return static_cast<double>(positions(graph.shape(graph.input()).space));
}

std::string name_of(Against against) {
  switch (against) {
    case Against::baseline:
      return "baseline";
    case Against::one_rank:
      return "one rank";
    case Against::design_1:
      return "design 1";
    case Against::other_size:
      return "other size";
    case Against::nothing:
      break;
  }
  return "";
}

}  // namespace

TrainingBenchmark::TrainingBenchmark(const Session& session, const Layout& layout,
                                     TrainingBenchmarkOptions options)
    : session_(session),
      world_(session.world()),
      layout_(layout),
      options_(std::move(options)),
      cores_(cores_of_node(world_)) {
  measured_.emplace(options_.graph, layout_, work(), options_.trainer, world_);
  add_other_side();
  if (session.first())
    baseline_.emplace(
        BaselineProcess::Options{baseline_flags(options_, world_.context().backend->device()),
                                 cores_, world_.context().timeout_seconds});
  // A first step, as the measured side has taken.
  if (options_.against == Against::baseline) time_round(world_, other_round());
}

TrainingFigures TrainingBenchmark::run() {
  const int64_t images = options_.batch.effective();
  TrainingFigures figures{.other = name_of(options_.against),
                          .images = images,
                          .flops = 3.0 * static_cast<double>(flops_per_image(options_.graph)) *
                                   static_cast<double>(images),
                          .gemm_type = options_.gemm_dtype};
  // Not between the sides: whoever came next would find its caches emptied.
  measure_gemm(figures);
  for (int i = -options_.warmup; i < options_.iterations; ++i) {
    if (i == 0) measured_->clear_costs();
    const double seconds = time_round(world_, [&] { measured_->step(); });
    const double other =
        figures.other.empty() ? 0 : time_round(world_, other_round()) / other_share_;
    if (i < 0) continue;
    figures.seconds.push_back(seconds);
    if (!figures.other.empty()) figures.other_seconds.push_back(other);
  }
  measure_gemm(figures);
  // It does not know what it has on a device.
  if (options_.against == Against::baseline && world_.context().backend->on_host())
    time_round(world_, ask_baseline("memory", figures.other_memory));
  figures.ranks = all_gather(
      RankFigures{measured_->costs(), resident_bytes(world_.context()), session_.threads()},
      world_);
  return figures;
}

std::pair<double, std::vector<OperatorProfile::Line>> TrainingBenchmark::profile() {
  std::optional<OperatorProfile> profile;
  if (session_.first()) profile.emplace();
  measured_->clear_costs();
  for (int i = 0; i < options_.iterations; ++i) time_round(world_, [&] { measured_->step(); });
  return {measured_->costs().seconds,
          profile ? profile->lines() : std::vector<OperatorProfile::Line>{}};
}

Work TrainingBenchmark::work() const {
  return share_work(layout_, options_.batch, options_.schedule, world_.rank());
}

void TrainingBenchmark::add_other_side() {
  TrainerOptions trainer = options_.trainer;
  if (options_.against == Against::design_1) {
    trainer.halo = {};
    other_.emplace(options_.graph, layout_, work(), trainer, world_);
  } else if (options_.against == Against::other_size) {
    const double larger = pixels(options_.graph) / pixels(*options_.other_graph);
    other_steps_ = std::max(1, static_cast<int>(larger));
    other_share_ = other_steps_ / larger;
    other_.emplace(*options_.other_graph, layout_, work(), options_.other_trainer, world_);
  } else if (options_.against == Against::one_rank) {
    trainer.cells = {{0, static_cast<int>(options_.graph.cells().size())}};
    alone_ = world_.split(session_.first() ? 0 : -1);
    if (alone_)
      other_.emplace(options_.graph, Layout(1, {Grid{}}),
                     work_alone(options_.batch, trainer.stage.batch_norm), trainer, *alone_);
  }
}

/// Returns the other side's round where this rank takes part in it, or else nothing.
std::function<void()> TrainingBenchmark::other_round() {
  if (other_)
    return [this] {
      for (int step = 0; step < other_steps_; ++step) other_->step();
    };
  if (baseline_ && options_.against == Against::baseline) return [this] { baseline_->ask("step"); };
  return nullptr;
}

/// Asks the baseline for a figure and keeps the largest.
std::function<void()> TrainingBenchmark::ask_baseline(const char* command, double& most) {
  if (!baseline_) return nullptr;
  return [this, command, &most] { most = std::max(most, baseline_->ask(command)); };
}

void TrainingBenchmark::measure_gemm(TrainingFigures& figures) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) time_round(world_, ask_baseline("gemm", figures.gemm_gflops));
}

}  // namespace mpi4dl
