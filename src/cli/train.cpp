#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/stop_signal.hpp"
#include "cli/checkpoint_flags.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/data_flags.hpp"
#include "cli/model_flags.hpp"
#include "cli/rank_table.hpp"
#include "cli/train_loop.hpp"
#include "cli/training_flags.hpp"
#include "comm/session.hpp"
#include "models/registry.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

struct TrainFlags {
  ModelFlags model;
  TrainingFlags training;
  DataFlags data;
  CheckpointFlags checkpoints;
  int64_t epochs = 1;
  std::string json_log;
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

int run_train(Session& session, const TrainFlags& flags) {
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
  options.learning_rate.total = TrainLoop::steps_of_epoch(size, batch.effective()) * flags.epochs;

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
  Checkpointing checkpoints(keeping,
                            decisive_settings(flags.model, flags.training, batch.effective()),
                            world, [&](const std::string& sentence) {
                              if (session.first()) std::printf("%s\n", sentence.c_str());
                            });
  const Position start = checkpoints.resume(trainer);
  TrainLoop loop(session, trainer, *data.training, checkpoints,
                 {.epochs = flags.epochs, .seed = options.seed, .json_log = flags.json_log});
  loop.run(start);
  if (flags.verbose) print_ranks(session, layout, trainer, loop.peak_bytes());
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
  flags->data.add_to(*train);
  train->add_option("--num-epochs", flags->epochs, "Times to go through all images")
      ->check(at_least(1));
  flags->checkpoints.add_to(*train);
  train->add_option("--json-log", flags->json_log,
                    "Write a line of JSON for each step to this file");
  train->add_flag("-v,--verbose", flags->verbose, "Show what each rank holds and needs");
  train->callback([flags, &chosen] {
    chosen = [flags](Session& session) { return run_train(session, *flags); };
  });
}

}  // namespace mpi4dl
