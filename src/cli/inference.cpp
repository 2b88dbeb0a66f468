#include "cli/inference.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/stopwatch.hpp"
#include "cli/checkpoint_flags.hpp"
#include "cli/checks.hpp"
#include "cli/dtype_flag.hpp"
#include "cli/trained_settings.hpp"
#include "comm/agreement.hpp"
#include "plan/balance.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

Inference::Part choose_part(const std::string& part, const DataParts& parts) {
  validate(part != "validation" || parts.validation,
           "--part validation: no images are held out; say which, for example by --val-fraction "
           "0.2, or leave --part out to take all images");
  if (!parts.validation) return Inference::Part::all;
  return part == "training" ? Inference::Part::training : Inference::Part::held_out;
}

}  // namespace

void InferenceFlags::add_to(CLI::App& command) {
  add_checkpoint_flag(command, weights);
  model.add_to(command);
  parallel.add_to(command);
  command.add_option("--batch-size", batch, "Largest batch that goes through a stage at once")
      ->check(at_least(1));
  add_dtype_flag(command, dtype);
  data.add_to(command);
  default_in_words(command.add_option("--part", part, "Which images: training or validation")
                       ->check(CLI::IsMember({"training", "validation"})),
                   "validation where images are held out, else all");
  on_bad_image.add_to(command);
  command.add_option("--seed", seed, "Random seed of synthetic images")->check(at_least(0));
}

void InferenceFlags::check(int ranks) const {
  validate(!weights.empty() || model.build().weights != nullptr,
           "--checkpoint is required: it names trained weights");
  parallel.check();
  const Layout layout(parallel.options, ranks);
}

std::string Inference::class_text(int64_t label) const {
  return classes.empty() ? std::to_string(label) : classes.at(label);
}

std::string Inference::part_text() const {
  if (part == Part::held_out) return "held out of training";
  return part == Part::training ? "to train on" : "with any that were trained on";
}

std::string Inference::left_out_text() const {
  return bad.empty() ? "" : fmt::format(" ({} of {} left out)", bad.size(), data->size());
}

Inference run_inference(Session& session, InferenceFlags& flags, CLI::App& command) {
  session.doing("building the model");
  const Communicator& world = session.world();
  run_together(world, [&] {
    adopt_settings(flags.weights, command, model_settings(flags.model, flags.data), flags.model);
  });
  flags.data.check();
  const Layout layout(flags.parallel.options, world.size());
  Model model = flags.model.build();
  model.resized.clear();  // what is not in the weights cannot be used
  const Graph& graph = model.graph;
  const DataParts parts = open_data(flags.data,
                                    {.image = graph.shape(graph.input()),
                                     .classes = model.classes(),
                                     .seed = flags.seed,
                                     .synthetic_images = 320,
                                     .labelled = flags.labelled,
                                     .names = class_names(flags.weights)},
                                    world);
  const Inference::Part part = choose_part(flags.part, parts);
  Inference result{.data = normalised_images(
                       part == Inference::Part::held_out ? parts.validation : parts.training,
                       flags.data.normalisation()),
                   .classes = parts.classes,
                   .part = part};
  const bool skip = flags.on_bad_image.skip();
  const BadSamples bad = check_images({result.data, nullptr}, skip, session).training;
  const EvaluatorOptions options{.halo = flags.parallel.halo,
                                 .cells = flags.parallel.cells(graph, layout),
                                 .type = scalar_type(flags.dtype),
                                 .batch = flags.batch};
  const ProcessGroups groups(layout, world);
  const StageParameters parameters =
      make_parameters(graph, options.cells, groups, options.type, flags.seed);

  session.doing("loading weights");
  load_weights(flags.weights, model, parameters, world);

  session.doing("running images through the model");
  const Stopwatch watch;
  Examination examination(result.data, graph, layout, groups, parameters,
                          {.evaluator = options, .skip_bad_images = skip, .bad = bad, .warn = warn},
                          world);
  result.predictions = examination.run();
  result.bad = examination.bad();
  result.seconds = watch.seconds();
  return result;
}

}  // namespace mpi4dl
