// write_logits WEIGHTS OUT HEIGHT WIDTH [resnet VERSION DEPTH | amoebanet LAYERS FILTERS]: what the
// model with these weights says of two images of noise, for a comparison with other programs.
// WEIGHTS are a checkpoint that holds its model, where none is named. OUT is a safetensors file
// with "images" and "logits".
#include <ATen/ATen.h>

#include <cstdio>

#include "base/error.hpp"
#include "comm/session.hpp"
#include "execute/stage_executor.hpp"
#include "models/registry.hpp"
#include "storage/safetensors.hpp"
#include "support/noise.hpp"
#include "train/model.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

Model model_named(const std::vector<std::string>& words) {
  if (words.size() == 4) return model_of(checkpoint_with_graph(words[0]));
  ModelOptions options{.name = words.at(4), .image = {std::stoi(words[2]), std::stoi(words[3])}};
  (options.name == "resnet" ? options.resnet_version : options.num_layers) = std::stoi(words.at(5));
  if (options.name == "resnet") {
    options.depth = std::stoi(words.at(6));
  } else {
    options.num_filters = std::stoi(words.at(6));
  }
  return {.name = words[0], .graph = build_model(options)};
}

void write_logits(const std::vector<std::string>& words, const Communicator& world) {
  const Model model = model_named(words);
  const Graph& graph = model.graph;
  const StagePlan plan(graph, {}, /*batch=*/2, {});
  const StageExecutor executor(plan, world, BatchNormScope::global);
  std::map<int, std::unique_ptr<Parameters>> parameters;
  parameters[0] = std::make_unique<Parameters>(graph, plan.nodes(), at::kFloat, /*seed=*/1,
                                               world.context().backend);
  load_weights(words[0], model, parameters, world);
  const int image = plan.inputs()[0], output = plan.outputs()[0];
  const Box& box = plan.value(image).computed[0];
  const at::Tensor images = testing::noise_pixels(box, box.shape(), /*seed=*/3, at::kFloat);
  StageExecutor::Batch batch(executor, *parameters[0], executor.context(/*training=*/false, 1));
  const Patch logits = batch.forward({{image, {box, images}}}).at(output);
  write_safetensors(words[1], {{"images", images}, {"logits", logits.data}});
}

}  // namespace
}  // namespace mpi4dl

int main(int argc, char** argv) {
  mpi4dl::Session session;
  try {
    mpi4dl::write_logits({argv + 1, argv + argc}, session.world());
  } catch (const std::exception& error) {
    session.fail(error);
  }
}
