#include "cli/inference.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/stopwatch.hpp"
#include "cli/checkpoint_flags.hpp"
#include "cli/checks.hpp"
#include "cli/number_type.hpp"
#include "cli/trained_settings.hpp"
#include "comm/agreement.hpp"
#include "models/registry.hpp"
#include "plan/balance.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

std::shared_ptr<const Dataset> choose_part(const std::string& part, const DataParts& parts) {
  if (part == "training") return parts.training;
  validate(part.empty() || parts.validation,
           "--part validation: no images are held out; say which, for example by --val-fraction "
           "0.2, or leave --part out to take all images");
  return parts.validation ? parts.validation : parts.training;
}

}  // namespace

void InferenceFlags::add_to(CLI::App& command) {
  add_checkpoint_flag(command, weights)->required();
  model.add_to(command);
  parallel.add_to(command);
  command.add_option("--batch-size", batch, "The most images that go through a stage together")
      ->check(at_least(1));
  add_dtype_flag(command, dtype);
  data.add_to(command);
  default_in_words(command.add_option("--part", part, "Which images: training or validation")
                       ->check(CLI::IsMember({"training", "validation"})),
                   "validation where images are held out, else all");
  on_bad_image.add_to(command);
  command.add_option("--seed", seed, "Of synthetic images");
}

void InferenceFlags::check(int ranks) const {
  parallel.check();
  const Layout layout(parallel.options, ranks);
}

std::string Inference::class_text(int64_t number) const {
  return classes.empty() ? std::to_string(number) : classes.at(number);
}

std::string Inference::left_out_text() const {
  return bad.empty() ? "" : fmt::format(" ({} of {} left out)", bad.size(), data->size());
}

Inference run_inference(Session& session, InferenceFlags& flags, CLI::App& command) {
  session.doing("building the model");
  const Communicator& world = session.world();
  run_together(world, [&] {
    adopt_settings(flags.weights, command, model_settings(flags.model, flags.data.view));
  });
  flags.data.check();
  const Layout layout(flags.parallel.options, world.size());
  const Graph graph = build_model(flags.model.model());
  const DataParts parts = open_data(flags.data,
                                    {.image = graph.shape(graph.input()),
                                     .classes = flags.model.options.classes,
                                     .seed = flags.seed,
                                     .synthetic_images = 320,
                                     .labelled = flags.labelled,
                                     .names = class_names(flags.weights)},
                                    world);
  Inference result{.data = choose_part(flags.part, parts), .classes = parts.classes};
  const bool skip = flags.on_bad_image.skip();
  const BadSamples bad = check_images({result.data, nullptr}, skip, session).training;
  const EvaluatorOptions options{.halo = flags.parallel.halo,
                                 .cells = flags.parallel.cells(graph, layout),
                                 .type = number_type(flags.dtype),
                                 .batch = flags.batch};
  const Team team(layout, world);
  const StageParameters parameters =
      make_parameters(graph, options.cells, team, options.type, flags.seed);

  session.doing("loading weights");
  load_weights(flags.weights, graph, parameters, world);

  session.doing("running images through the model");
  const Stopwatch watch;
  Examination examination(result.data, graph, layout, team, parameters,
                          {.evaluator = options, .skip_bad_images = skip, .bad = bad, .warn = warn},
                          world);
  result.predictions = examination.run();
  result.bad = examination.bad();
  result.seconds = watch.seconds();
  return result;
}

}  // namespace mpi4dl
