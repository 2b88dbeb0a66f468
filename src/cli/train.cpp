#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "base/stop_signal.hpp"
#include "cli/banner.hpp"
#include "cli/checkpoint_flags.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/data_flags.hpp"
#include "cli/loader_flags.hpp"
#include "cli/model_flags.hpp"
#include "cli/planned_run.hpp"
#include "cli/rank_table.hpp"
#include "cli/reports.hpp"
#include "cli/run_config.hpp"
#include "cli/run_folders.hpp"
#include "cli/stopping.hpp"
#include "cli/train_loop.hpp"
#include "cli/trained_settings.hpp"
#include "cli/training_flags.hpp"
#include "cli/validation.hpp"
#include "comm/session.hpp"
#include "models/registry.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

struct TrainFlags {
  ModelFlags model;
  TrainingFlags training;
  DataFlags data;
  LoaderFlags loader;
  CheckpointFlags checkpoints;
  int64_t epochs = 1;
  std::string eval_every;  // empty: every epoch where images are held out
  std::string json_log;
  std::string run_dir;
  bool verbose = false;
};

std::string describe(const Graph& graph, const Layout& layout, const TrainFlags& flags,
                     const TrainerOptions& options) {
  const TrainingFlags& training = flags.training;
  const BatchShape batch = training.batch_shape(layout);
  std::string text =
      fmt::format("{}, {} parameters, images {} from {}, effective batch {}, {} on {} rank{}\n",
                  flags.model.options.name, graph.parameter_count(), flags.model.image_size,
                  flags.data.application(), batch.effective(), training.dtype,
                  layout.replicas() * layout.group_size(),
                  layout.replicas() * layout.group_size() == 1 ? "" : "s");
  text += describe_layout(graph, layout, options.cells, training);
  return text;
}

/// Micro-batches are as large as in training.
EvaluatorOptions evaluator_options(const TrainerOptions& options, const BatchShape& batch) {
  return {.halo = options.halo,
          .cells = options.cells,
          .type = options.type,
          .batch = divide_up(batch.batch, batch.parts)};
}

/// Throws UsageError where the command line alone shows that the run cannot be.
void check(const TrainFlags& flags, int ranks) {
  flags.training.check();
  flags.data.check();
  flags.loader.options();
  flags.checkpoints.options();
  if (!flags.eval_every.empty() && flags.eval_every != "never")
    parse_every("--eval-every", flags.eval_every);
  const Layout layout(flags.training.parallel.options, ranks);
  build_model(flags.model.model());
}

/// Sorted: what an earlier run has left out, and what cannot be opened now.
std::vector<int64_t> all_left_out(std::vector<int64_t> before, const BadSamples& bad) {
  for (const auto& [sample, reason] : bad) before.push_back(sample);
  std::ranges::sort(before);
  before.erase(std::unique(before.begin(), before.end()), before.end());
  return before;
}

/// A line, where there is something to say.
std::string describe_left_out(const Loader& loader, const Validation& validation,
                              const DataParts& data) {
  const int64_t training = std::ssize(loader.left_out());
  if (training + validation.left_out() == 0) return "";
  std::string text =
      fmt::format("left out: {} of {} images for training", training, data.training->size());
  if (data.validation)
    text +=
        fmt::format(", {} of {} for validation", validation.left_out(), data.validation->size());
  return text + "\n";
}

int run_train(Session& session, const TrainFlags& flags, const CLI::App& command) {
  session.doing("building the model");
  const Communicator& world = session.world();
  CheckpointOptions keeping = flags.checkpoints.options();
  const Layout layout(flags.training.parallel.options, world.size());
  const Graph graph = build_model(flags.model.model());
  const BatchShape batch = flags.training.batch_shape(layout);
  TrainerOptions options = flags.training.trainer_options(graph, layout);
  const RunFolders folders(session, keeping.folder, flags.run_dir);
  const Stopping stopping(session, keeping.folder);
  options.stop_requested = stop_asked;
  const DataParts data = open_data(flags.data,
                                   {.image = graph.shape(graph.input()),
                                    .classes = flags.model.options.classes,
                                    .seed = options.seed,
                                    .synthetic_images = 10 * batch.effective()},
                                   world);
  keeping.classes = data.classes;
  const int64_t size = data.training->size();
  validate(size >= batch.effective(),
           "{} images to train on are fewer than the effective batch of {}; use a smaller batch or "
           "more images",
           size, batch.effective());
  options.learning_rate.total = size / batch.effective() * flags.epochs;
  LoaderOptions loading = flags.loader.options();
  const BadParts bad = check_images(data, loading.skip_bad_images, session);
  loading.effective_batch = batch.effective();
  loading.epochs = flags.epochs;
  loading.image = graph.shape(graph.input());
  loading.seed = options.seed;

  session.doing("preparing to train");
  Trainer trainer(graph, layout,
                  share_work(layout, batch, flags.training.schedule_kind(), world.rank()), options,
                  world);
  if (session.first())
    fmt::print(
        "{}\n{}", describe(graph, layout, flags, options),
        banner({.data = data,
                .layout = layout,
                .asked = flags.training.parallel.options,
                .checkpoints = keeping,
                .classes = flags.model.options.classes,
                .effective_batch = batch.effective(),
                .fit = flags.data.reads_files() ? flags.data.view.fit : "",
                .eval_every = flags.eval_every,
                .threads = session.threads(),
                .memory_bytes =
                    PlannedRun(graph, flags.training, world.size(), flags.loader.workers).most()}));

  session.doing("reading weights");
  if (!flags.checkpoints.weights.empty()) load_weights(flags.checkpoints.weights, trainer, world);
  Checkpointing checkpoints(keeping,
                            decisive_settings({.model = flags.model,
                                               .view = flags.data.view,
                                               .training = flags.training,
                                               .app = flags.data.application(),
                                               .effective_batch = batch.effective(),
                                               .images = data.training->size()}),
                            world, [&](const std::string& sentence) {
                              if (session.first()) std::printf("%s\n", sentence.c_str());
                            });
  const DataState start = checkpoints.resume(trainer);
  Loader loader(*data.training, trainer.readings(), loading, world,
                all_left_out(start.left_out, bad.training));
  Validation validation(flags.eval_every, data.validation, layout, trainer,
                        {.evaluator = evaluator_options(options, batch),
                         .skip_bad_images = loading.skip_bad_images,
                         .bad = bad.validation,
                         .warn = loading.warn},
                        world);
  Reports reports(session,
                  {.json_log = flags.json_log,
                   .run_dir = flags.run_dir,
                   .config = run_config(command, graph, layout, options.cells, flags.training),
                   .replay = replay_config(command, world.size()),
                   .goes_on = !keeping.resume.empty(),
                   .steps_done = trainer.steps()});
  stopping.begin_steps();
  TrainLoop loop(session, trainer, loader, {checkpoints, validation, reports}, stopping,
                 flags.epochs);
  loop.run(start.position);
  if (session.first()) std::printf("%s", describe_left_out(loader, validation, data).c_str());
  if (flags.verbose) print_ranks(session, layout, trainer, reports.peak_bytes());
  return loop.stopped() ? stopping.exit_code() : 0;
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
  flags->data.add_to(*train);
  flags->loader.add_to(*train);
  flags->checkpoints.add_to(*train);
  train->option_defaults()->group("Reports");
  default_in_words(
      train->add_option(
          "--eval-every", flags->eval_every,
          "How often to evaluate on the images held out: 2 (epochs), 500steps or never"),
      "1 where images are held out");
  train->add_option("--run-dir", flags->run_dir,
                    "Write config, metrics, TensorBoard events and a summary to this folder");
  train->add_option("--json-log", flags->json_log,
                    "Write a line of JSON for each step to this file");
  train->add_flag("-v,--verbose", flags->verbose, "Show what each rank holds and needs");
  train->callback([flags, train, &chosen] {
    chosen.check = [flags](int ranks) { check(*flags, ranks); };
    chosen.run = [flags, train](Session& session) { return run_train(session, *flags, *train); };
  });
}

}  // namespace mpi4dl
