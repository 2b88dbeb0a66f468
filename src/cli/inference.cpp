#include "cli/inference.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/stopwatch.hpp"
#include "cli/checks.hpp"
#include "cli/number_type.hpp"
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
  command
      .add_option("--weights", weights,
                  "A checkpoint, a folder of checkpoints (the newest), or a file of torch.save or "
                  "safetensors")
      ->required();
  model.add_to(command);
  parallel.add_to(command);
  command.add_option("--batch-size", batch, "The most images that go through a stage together")
      ->check(at_least(1));
  add_dtype_flag(command, dtype);
  data.add_to(command);
  command.add_option("--part", part, "Which images: training or validation")
      ->check(CLI::IsMember({"training", "validation"}))
      ->default_str("validation where images are held out, else all");
  command.add_option("--seed", seed, "Of synthetic images");
}

Inference run_inference(Session& session, const InferenceFlags& flags) {
  session.doing("building the model");
  const Communicator& world = session.world();
  flags.parallel.check();
  const Layout layout(flags.parallel.options, world.size());
  const Graph graph = build_model(flags.model.model());
  const DataParts parts = open_data(flags.data,
                                    {.image = graph.shape(graph.input()),
                                     .classes = flags.model.options.classes,
                                     .seed = flags.seed,
                                     .synthetic_images = 320},
                                    world);
  Inference result{.data = choose_part(flags.part, parts)};
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
  Evaluator evaluator(graph, layout, team, parameters, options, result.data->size(), world);
  SampleBatch images = all_samples(*result.data);
  result.predictions = evaluator.run(images);
  result.seconds = watch.seconds();
  return result;
}

}  // namespace mpi4dl
