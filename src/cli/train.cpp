#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "base/stop_signal.hpp"
#include "cli/checkpoint_flags.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/data_flags.hpp"
#include "cli/loader_flags.hpp"
#include "cli/model_flags.hpp"
#include "cli/rank_table.hpp"
#include "cli/reports.hpp"
#include "cli/run_config.hpp"
#include "cli/train_loop.hpp"
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

int run_train(Session& session, const TrainFlags& flags, const CLI::App& command) {
  session.doing("building the model");
  const Communicator& world = session.world();
  flags.training.check();
  const CheckpointOptions keeping = flags.checkpoints.options();
  const Layout layout(flags.training.parallel.options, world.size());
  const Graph graph = build_model(flags.model.model());
  const BatchShape batch = flags.training.batch_shape(layout);
  TrainerOptions options = flags.training.trainer_options(graph, layout);
  const DataParts data = open_data(flags.data,
                                   {.image = graph.shape(graph.input()),
                                    .classes = flags.model.options.classes,
                                    .seed = options.seed,
                                    .synthetic_images = 10 * batch.effective()},
                                   world);
  const int64_t size = data.training->size();
  validate(size >= batch.effective(),
           "{} images to train on are fewer than the effective batch of {}; use a smaller batch or "
           "more images",
           size, batch.effective());
  options.learning_rate.total = size / batch.effective() * flags.epochs;
  LoaderOptions loading = flags.loader.options();
  loading.effective_batch = batch.effective();
  loading.epochs = flags.epochs;
  loading.image = graph.shape(graph.input());
  loading.seed = options.seed;

  // Without checkpoints there is nothing to save, and a signal ends the run as it ends others.
  std::optional<StopSignal> signal;
  if (!keeping.folder.empty()) signal.emplace();
  options.stop_requested = [&] { return signal && signal->came(); };

  session.doing("preparing to train");
  Trainer trainer(graph, layout,
                  share_work(layout, batch, flags.training.schedule_kind(), world.rank()), options,
                  world);
  if (session.first()) std::printf("%s\n", describe(graph, layout, flags, options).c_str());

  session.doing("reading weights");
  if (!flags.checkpoints.weights.empty()) load_weights(flags.checkpoints.weights, trainer, world);
  Checkpointing checkpoints(
      keeping,
      decisive_settings(flags.model, flags.training, batch.effective(), data.training->size()),
      world, [&](const std::string& sentence) {
        if (session.first()) std::printf("%s\n", sentence.c_str());
      });
  const DataState start = checkpoints.resume(trainer);
  Loader loader(*data.training, trainer.readings(), loading, world, start.left_out);
  Validation validation(flags.eval_every, data.validation, layout, trainer,
                        evaluator_options(options, batch), world);
  Reports reports(session,
                  {.json_log = flags.json_log,
                   .run_dir = flags.run_dir,
                   .config = run_config(command, graph, layout, options.cells, flags.training),
                   .goes_on = !keeping.resume.empty(),
                   .steps_done = trainer.steps()});
  TrainLoop(session, trainer, loader, {checkpoints, validation, reports}, flags.epochs)
      .run(start.position);
  if (flags.verbose) print_ranks(session, layout, trainer, reports.peak_bytes());
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
  flags->data.add_to(*train);
  flags->loader.add_to(*train);
  flags->checkpoints.add_to(*train);
  train->option_defaults()->group("Reports");
  train
      ->add_option("--eval-every", flags->eval_every,
                   "How often to evaluate on the images held out: 2 (epochs), 500steps or never")
      ->default_str("1 where images are held out");
  train->add_option("--run-dir", flags->run_dir,
                    "Write config, metrics, TensorBoard events and a summary to this folder");
  train->add_option("--json-log", flags->json_log,
                    "Write a line of JSON for each step to this file");
  train->add_flag("-v,--verbose", flags->verbose, "Show what each rank holds and needs");
  train->callback([flags, train, &chosen] {
    chosen = [flags, train](Session& session) { return run_train(session, *flags, *train); };
  });
}

}  // namespace mpi4dl
