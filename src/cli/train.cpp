#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "base/stop_signal.hpp"
#include "cli/add_command.hpp"
#include "cli/checkpoint_flags.hpp"
#include "cli/checks.hpp"
#include "cli/data_flags.hpp"
#include "cli/device_memory.hpp"
#include "cli/loader_flags.hpp"
#include "cli/model_flags.hpp"
#include "cli/planned_run.hpp"
#include "cli/run_config.hpp"
#include "cli/run_folders.hpp"
#include "cli/stopping.hpp"
#include "cli/train_loop.hpp"
#include "cli/trained_settings.hpp"
#include "cli/training_flags.hpp"
#include "cli/validation.hpp"
#include "graph/text.hpp"
#include "report/banner.hpp"
#include "report/rank_table.hpp"
#include "report/run_reports.hpp"
#include "train/evaluator.hpp"
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

/// Returns the model that was asked for, or else that of the checkpoint which the run resumes or
/// starts from, where that holds it.
Model model_of(const TrainFlags& flags) {
  ModelFlags model = flags.model;
  const CheckpointFlags& from = flags.checkpoints;
  if (!model.is_chosen())
    model.checkpoint = checkpoint_with_graph(from.resume == "auto" ? from.folder : from.resume);
  if (!model.is_chosen() && model.checkpoint.empty())
    model.checkpoint = checkpoint_with_graph(from.weights);
  Model built = model.build();
  validate(model.reinit.empty() || built.weights != nullptr || !from.weights.empty(),
           "--reinit '{}' requires weights to start from; name some with --checkpoint",
           model.reinit[0]);
  return built;
}

/// Returns what checkpoints keep of a model that came from a file.
std::optional<KeptModel> kept_of(const Model& model, bool first) {
  if (!model.own) return std::nullopt;
  return KeptModel{model.name, to_text(model.graph), model.exported,
                   first ? model.carried_tensors() : TensorMap{}};
}

std::string describe(const Model& model, const Graph& graph, const Layout& layout,
                     const TrainFlags& flags, const TrainerOptions& options) {
  const TrainingFlags& training = flags.training;
  const BatchShape batch = training.batch_shape(layout);
  std::string text = fmt::format(
      "{}, {} parameters, images {} from {}, effective batch {}, {} on {} rank{}\n", model.name,
      graph.parameter_count(), image_size_text(graph), flags.data.application(), batch.effective(),
      training.dtype, layout.replicas() * layout.group_size(),
      layout.replicas() * layout.group_size() == 1 ? "" : "s");
  text += describe_layout(graph, layout, options.cells, training);
  return text;
}

/// Evaluates in micro-batches as large as those of training, and treats bad images as training
/// does.
ExaminationOptions examination_options(const TrainerOptions& options, const BatchShape& batch,
                                       const LoaderOptions& loading, const BadParts& bad) {
  return {.evaluator = {.halo = options.halo,
                        .cells = options.cells,
                        .type = options.type,
                        .batch = divide_up(batch.batch, batch.parts)},
          .skip_bad_images = loading.skip_bad_images,
          .bad = bad.validation,
          .warn = loading.warn};
}

/// Returns what a run must have in common with the one that it resumes.
Manifest::Settings settings_of(const TrainFlags& flags, const Model& model, const BatchShape& batch,
                               const DataParts& data) {
  return decisive_settings({.flags = flags.model,
                            .model = model,
                            .data = flags.data,
                            .training = flags.training,
                            .effective_batch = batch.effective(),
                            .images = data.training->size()});
}

/// Throws UsageError where the command line alone shows that the run cannot be.
void check_train(const TrainFlags& flags, int ranks) {
  OptimizerOptions options;
  flags.training.check();
  flags.data.check();
  flags.loader.options();
  flags.checkpoints.options();
  if (!flags.eval_every.empty() && flags.eval_every != "never")
    parse_every("--eval-every", flags.eval_every);
  const Layout layout(flags.training.parallel.options, ranks);
  flags.training.tuning.set(options, flags.training.tuning.frozen(model_of(flags).graph));
}

/// Returns, sorted, what an earlier run has left out and what cannot be opened now.
std::vector<int64_t> all_left_out(std::vector<int64_t> before, const BadSamples& bad) {
  for (const auto& [sample, reason] : bad) before.push_back(sample);
  std::ranges::sort(before);
  before.erase(std::unique(before.begin(), before.end()), before.end());
  return before;
}

/// Returns a line where there is something to say.
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

/// Returns the model with what the file of its first weights has beside parameters.
Model model_to_train(const TrainFlags& flags) {
  Model model = model_of(flags);
  const std::string& weights = flags.checkpoints.weights;
  if (model.own && !weights.empty() && model.state == nullptr) carry_along(weights, model);
  return model;
}

TrainerOptions trainer_options(const TrainFlags& flags, const Graph& graph, const Layout& layout) {
  TrainerOptions options = flags.training.trainer_options(graph, layout);
  options.stop_requested = stop_asked;
  return options;
}

DataParts open_images(const TrainFlags& flags, const Model& model, const Graph& graph,
                      const BatchShape& batch, const Communicator& world) {
  DataParts data = open_data(flags.data,
                             {.image = graph.shape(graph.input()),
                              .classes = model.classes(),
                              .seed = flags.training.trainer.seed,
                              .synthetic_images = 10 * batch.effective()},
                             world);
  data.validation = normalised_images(data.validation, flags.data.normalisation());
  validate(data.training->size() >= batch.effective(),
           "{} images to train on are fewer than the effective batch of {}; use a smaller batch or "
           "more images",
           data.training->size(), batch.effective());
  return data;
}

LoaderOptions loader_options(const TrainFlags& flags, const Graph& graph, const BatchShape& batch) {
  LoaderOptions options = flags.loader.options();
  options.effective_batch = batch.effective();
  options.epochs = flags.epochs;
  options.image = graph.shape(graph.input());
  options.seed = flags.training.trainer.seed;
  options.normalisation = flags.data.normalisation();
  return options;
}

/// Says what is about to be trained, and how; adds to the facts what flags and plan say.
std::string introduction(const TrainFlags& flags, const Model& model, const Graph& graph,
                         const TrainerOptions& options, const PlannedRun& planned,
                         BannerFacts facts) {
  facts.classes = model.classes();
  facts.fit = flags.data.reads_files() ? flags.data.view.fit : "";
  facts.eval_every = flags.eval_every;
  facts.memory_bytes = planned.most();
  facts.host_bytes = planned.options.on_device ? planned.largest().on_host() : 0;
  facts.hints = {.hold_out_images = "--val-fraction 0.1 would hold out a tenth",
                 .keep_layers_on_tiles = "--split-size 1 would keep them on the tiles",
                 .keep_checkpoints = "--checkpoint-dir FOLDER would keep some"};
  std::string text;
  for (const std::string& note : model.notes) text += fmt::format("{}: {}\n", model.name, note);
  text += describe(model, graph, facts.layout, flags, options);
  return text + "\n" + banner(facts);
}

/// Takes over weights where the run starts from some.
void load_first_weights(const std::string& file, const Model& model, Trainer& trainer,
                        const Communicator& world) {
  if (!file.empty() || model.weights != nullptr || model.constants != nullptr)
    load_weights(file, model, trainer, world);
}

int run_train(Session& session, const TrainFlags& flags, const CLI::App& command) {
  const auto say = [&](const std::string& text) {
    if (session.first()) fmt::print("{}", text);
  };
  session.doing("building the model");
  const Communicator& world = session.world();
  const Layout layout(flags.training.parallel.options, world.size());
  Model model = model_to_train(flags);
  const Graph graph = flags.training.tuning.frozen(model.graph);
  check_classifier(graph);
  const BatchShape batch = flags.training.batch_shape(layout);
  TrainerOptions options = trainer_options(flags, graph, layout);
  CheckpointOptions keeping = flags.checkpoints.options();
  const RunFolders folders(session, keeping.folder, flags.run_dir);
  const Stopping stopping(session, keeping.folder);

  const DataParts data = open_images(flags, model, graph, batch, world);
  options.learning_rate.total = data.training->size() / batch.effective() * flags.epochs;
  keeping.classes = data.classes;
  keeping.model = kept_of(model, session.first());
  const LoaderOptions loading = loader_options(flags, graph, batch);
  const BadParts bad = check_images(data, loading.skip_bad_images, session);

  session.doing("preparing to train");
  const PlannedRun planned =
      plan_run(graph, flags.training, world.size(), flags.loader.workers, place_of(session));
  const ScheduleKind schedule = flags.training.schedule_kind();
  Trainer trainer(graph, layout, share_work(layout, batch, schedule, world.rank()), options, world);
  say(introduction(flags, model, graph, options, planned,
                   {.data = data,
                    .layout = layout,
                    .asked = flags.training.parallel.options,
                    .checkpoints = keeping,
                    .effective_batch = batch.effective(),
                    .threads = session.threads()}));

  session.doing("reading weights");
  load_first_weights(flags.checkpoints.weights, model, trainer, world);
  Checkpointing checkpoints(keeping, settings_of(flags, model, batch, data), world,
                            [&](const std::string& sentence) { say(sentence + "\n"); });
  const DataState start = checkpoints.resume(trainer);
  Loader loader(*data.training, trainer.readings(), loading, world,
                all_left_out(start.left_out, bad.training));
  Validation validation(flags.eval_every, data.validation, layout, trainer,
                        examination_options(options, batch, loading, bad), world);
  RunReports reports(session,
                     {.json_log = flags.json_log,
                      .run_dir = flags.run_dir,
                      .config = run_config(command, graph, layout, options.cells, flags.training),
                      .replay = replay_config(command, world.size(), session.threads(),
                                              checkpoints.resumed_from()),
                      .resumed = !keeping.resume.empty(),
                      .steps_done = trainer.steps()});
  stopping.begin_steps();
  TrainLoop loop(session, trainer, loader, {checkpoints, validation, reports}, stopping,
                 flags.epochs);
  loop.run(start.position);
  say(describe_left_out(loader, validation, data));
  if (flags.verbose) print_ranks(session, layout, trainer, reports.peak_bytes());
  return loop.stopped() ? stopping.exit_code() : 0;
}

}  // namespace

void add_train(CLI::App& app, Command& chosen) {
  auto [train, flags] = add_command<TrainFlags>(
      app, chosen, "train", "Train a model whose images and layers are spread over the ranks",
      [](Session& session, const TrainFlags& given, const CLI::App& command) {
        return with_planned_memory(
            session, [&] { return model_of(given).graph; }, given.training,
            [&] { return run_train(session, given, command); });
      },
      check_train);
  flags.model.add_to(train);
  flags.model.add_reinit_to(train);
  flags.training.add_layout_flags(train);
  flags.training.add_learning_flags(train);
  train.add_option("--num-epochs", flags.epochs, "Passes over the training images")
      ->check(at_least(1));
  flags.data.add_to(train);
  train.get_option("--parallelism")->each([&data = flags.data](const std::string& /*kind*/) {
    data.of_benchmark = true;
  });
  flags.loader.add_to(train);
  flags.checkpoints.add_to(train);
  train.option_defaults()->group("Reports");
  default_in_words(
      train.add_option(
          "--eval-every", flags.eval_every,
          "How often to evaluate on the validation images: 2 (epochs), 500steps or never"),
      "1 where images are held out");
  train.add_option("--run-dir", flags.run_dir,
                   "Write config, metrics, TensorBoard events and a summary to this folder");
  train.add_option("--json-log", flags.json_log, "Write a line of JSON for each step to this file");
  train.add_flag("-v,--verbose", flags.verbose, "Show what each rank holds and needs");
}

}  // namespace mpi4dl
