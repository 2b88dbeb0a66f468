// write_logits WEIGHTS OUT HEIGHT WIDTH (resnet VERSION DEPTH | amoebanet LAYERS FILTERS): what the
// model with these weights says of two images of noise, for a comparison with other programs. OUT
// is a safetensors file with "images" and "logits".
#include <ATen/ATen.h>

#include <cstdio>

#include "base/error.hpp"
#include "comm/session.hpp"
#include "data/noise.hpp"
#include "models/registry.hpp"
#include "ops/stage_runner.hpp"
#include "storage/safetensors.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

ModelOptions model_options(const std::vector<std::string>& words) {
  ModelOptions options{.name = words.at(4), .image = {std::stoi(words[2]), std::stoi(words[3])}};
  (options.name == "resnet" ? options.resnet_version : options.num_layers) = std::stoi(words.at(5));
  if (options.name == "resnet") {
    options.depth = std::stoi(words.at(6));
  } else {
    options.num_filters = std::stoi(words.at(6));
  }
  return options;
}

void write_logits(const std::vector<std::string>& words, const Communicator& world) {
  const Graph graph = build_model(model_options(words));
  const StagePlan plan(graph, {}, /*batch=*/2, {});
  const StageRunner runner(plan, world, BatchNormScope::global);
  std::map<int, std::unique_ptr<Parameters>> parameters;
  parameters[0] = std::make_unique<Parameters>(graph, plan.nodes(), at::kFloat, /*seed=*/1);
  load_weights(words[0], graph, parameters, world);
  const int image = plan.inputs()[0], output = plan.outputs()[0];
  const Box& box = plan.value(image).computed[0];
  const at::Tensor images = noise_pixels(box, box.shape(), /*seed=*/3, at::kFloat);
  StageRunner::Batch batch(runner, *parameters[0], runner.context(/*training=*/false, 1));
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
