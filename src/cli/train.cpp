#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>

#include "base/error.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/model_flags.hpp"
#include "cli/training_flags.hpp"
#include "comm/memory_meter.hpp"
#include "comm/session.hpp"
#include "data/sampler.hpp"
#include "data/synthetic.hpp"
#include "models/registry.hpp"
#include "report/progress.hpp"

namespace mpi4dl {
namespace {

struct TrainFlags {
  ModelFlags model;
  TrainingFlags training;
  int64_t epochs = 1;
  std::string app = "synthetic";
  int64_t images = 0;  // 0: ten effective batches
  std::string json_log;
  bool verbose = false;
};

/// The reference's numbers for its applications.
std::string application(const std::string& app) {
  if (app == "1") return "medical";
  if (app == "2") return "cifar";
  if (app == "3") return "synthetic";
  return app;
}

std::unique_ptr<Dataset> open_data(const TrainFlags& flags, const Graph& graph, int64_t size) {
  const SyntheticOptions options{.size = size,
                                 .classes = flags.model.options.classes,
                                 .image = graph.shape(graph.input()),
                                 .seed = flags.training.trainer.seed};
  const std::string app = application(flags.app);
  validate(app != "medical" && app != "cifar",
           "--app {}: this version reads no image files yet; use synthetic or random", flags.app);
  if (app == "random") return std::make_unique<RandomImages>(options);
  return std::make_unique<SyntheticImages>(options);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string describe(const Graph& graph, const Layout& layout, const TrainFlags& flags,
                     const TrainerOptions& options) {
  const TrainingFlags& training = flags.training;
  const BatchShape batch = training.batch_shape(layout);
  std::string text =
      fmt::format("{}, {} parameters, images {} from {}, effective batch {}, {} on {} rank{}\n",
                  flags.model.options.name, graph.parameter_count(), flags.model.image_size,
                  application(flags.app), batch.effective(), training.dtype,
                  layout.replicas() * layout.group_size(),
                  layout.replicas() * layout.group_size() == 1 ? "" : "s");
  text += describe_layout(graph, layout, options.cells, training);
  return text;
}

class StepLog {
 public:
  StepLog(const std::string& file, bool writes) : wanted_(!file.empty()) {
    if (!wanted_ || !writes) return;
    out_.open(file);
    validate(out_.good(), "cannot write to --json-log {}", file);
  }

  /// Collective over the world.
  void write(const StepRecord& record, const StepReport& report, const Communicator& world) {
    if (!wanted_) return;
    at::Tensor resident = at::full({1}, resident_bytes(), at::kLong);
    world.all_reduce(resident, Reduction::max);
    if (!out_.is_open()) return;
    out_ << nlohmann::ordered_json{{"epoch", record.epoch},
                                   {"step", record.step},
                                   {"loss", record.loss},
                                   {"accuracy", static_cast<double>(record.correct) /
                                                    static_cast<double>(record.images)},
                                   {"images_per_second", record.images_per_second()},
                                   {"seconds", record.seconds},
                                   {"learning_rate", record.learning_rate},
                                   {"peak_bytes", report.peak_bytes},
                                   {"resident_bytes", resident.item<int64_t>()},
                                   {"messages", report.sent.messages},
                                   {"bytes", report.sent.bytes}}
                .dump()
         << "\n"
         << std::flush;
  }

 private:
  bool wanted_;
  std::ofstream out_;  // on the first rank
};

/// What each rank has and needs.
void print_ranks(const Session& session, const Layout& layout, const Trainer& trainer,
                 int64_t peak_bytes) {
  int64_t parameter_bytes = 0;
  for (const auto& [stage, parameters] : trainer.parameters())
    for (const auto& [name, values] : parameters->trainable())
      parameter_bytes += static_cast<int64_t>(values.nbytes());
  struct Line {
    int64_t peak, parameters;
    int threads;
  };
  const auto lines =
      all_gather(session.world(), Line{peak_bytes, parameter_bytes, session.threads()});
  if (!session.first()) return;
  constexpr double kMiB = 1024.0 * 1024.0;
  std::printf("%5s  %-40s %8s %16s %16s\n", "rank", "roles", "threads", "parameters MiB",
              "activations MiB");
  for (int rank = 0; rank < static_cast<int>(lines.size()); ++rank) {
    std::string roles;
    for (const Role& role : layout.roles(rank))
      roles += fmt::format("{}replica {} stage {} tile {}", roles.empty() ? "" : ", back ",
                           role.replica, role.stage, role.tile);
    std::printf("%5d  %-40s %8d %16.1f %16.1f\n", rank, roles.c_str(), lines[rank].threads,
                static_cast<double>(lines[rank].parameters) / kMiB,
                static_cast<double>(lines[rank].peak) / kMiB);
  }
}

int run_train(Session& session, const TrainFlags& flags) {
  session.doing("building the model");
  const Communicator& world = session.world();
  flags.training.check();
  const Layout layout(flags.training.parallel.options, world.size());
  const Graph graph = build_model(flags.model.model());
  const BatchShape batch = flags.training.batch_shape(layout);
  TrainerOptions options = flags.training.trainer_options(graph, layout);
  const int64_t size = flags.images == 0 ? 10 * batch.effective() : flags.images;
  validate(size >= batch.effective(),
           "--num-images {} is less than the effective batch of {}; use a smaller batch or more "
           "images",
           size, batch.effective());
  const int64_t steps = size / batch.effective();
  options.learning_rate.total = steps * flags.epochs;
  const auto data = open_data(flags, graph, size);
  StepLog log(flags.json_log, session.first());

  session.doing("preparing to train");
  Trainer trainer(graph, layout,
                  share_work(layout, batch, flags.training.schedule_kind(), world.rank()), options,
                  world);
  if (session.first()) std::printf("%s\n", describe(graph, layout, flags, options).c_str());

  Progress progress(stdout);
  int64_t peak_bytes = 0;
  for (int64_t epoch = 1; epoch <= flags.epochs; ++epoch) {
    const std::vector<int64_t> order = shuffled(size, options.seed, epoch);
    for (int64_t step = 1; step <= steps; ++step) {
      session.doing(fmt::format("training, epoch {} step {}", epoch, step));
      const auto first = order.begin() + (step - 1) * batch.effective();
      const auto start = std::chrono::steady_clock::now();
      const StepReport report = trainer.step(*data, {first, first + batch.effective()});
      peak_bytes = std::max(peak_bytes, report.peak_bytes);
      const StepRecord record{.epoch = epoch,
                              .epochs = flags.epochs,
                              .step = step,
                              .steps = steps,
                              .loss = report.loss,
                              .correct = report.correct,
                              .images = report.images,
                              .seconds = seconds_since(start),
                              .learning_rate = report.learning_rate};
      if (session.first()) progress.step(record);
      log.write(record, report, world);
    }
    if (session.first()) progress.end_epoch();
  }
  if (session.first()) progress.end_run();
  if (flags.verbose) print_ranks(session, layout, trainer, peak_bytes);
  return 0;
}

}  // namespace

void add_train(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* train = app.add_subcommand(
      "train", "Train a model whose images and layers are spread over the ranks");
  train->option_defaults()->always_capture_default();
  flags->model.add_to(*train);
  flags->training.add_layout_flags(*train);
  flags->training.add_learning_flags(*train);
  train->add_option("--num-epochs", flags->epochs, "Times to go through all images")
      ->check(at_least(1));
  train->add_option("--app", flags->app, "Images: synthetic (3), random, cifar (2) or medical (1)")
      ->check(CLI::IsMember({"synthetic", "random", "cifar", "medical", "1", "2", "3"}));
  train->add_option("--num-images", flags->images, "Synthetic images of an epoch")
      ->check(at_least(1))
      ->default_str("ten effective batches");
  train->add_option("--json-log", flags->json_log,
                    "Write a line of JSON for each step to this file");
  train->add_flag("-v,--verbose", flags->verbose, "Show what each rank holds and needs");
  train->callback([flags, &chosen] {
    chosen = [flags](Session& session) { return run_train(session, *flags); };
  });
}

}  // namespace mpi4dl
