#include "train/step.hpp"

#include <ATen/Functions.h>

#include "base/random.hpp"
#include "comm/memory_meter.hpp"
#include "data/noise.hpp"
#include "train/loss.hpp"

namespace mpi4dl {
namespace {

/// Everybody's part of the output on the first rank.
at::Tensor gather(const StagePlan& plan, int node, const Patch& mine, const Communicator& stage) {
  const Box whole = Box::whole(plan.full_shape(node));
  std::vector<Box> needed(stage.size(), Box::none(whole.axes()));
  needed[0] = whole;
  const Redistribution join(stage, one_box_each(plan.value(node).owned), one_box_each(needed),
                            "gathering the output");
  const Patch all = make_patch(stage, needed[stage.rank()], mine.data.scalar_type());
  join.run(mine, all);
  return all.data;
}

double summed(double value, const Communicator& stage) {
  at::Tensor sum = at::full({1}, value, at::kDouble);
  stage.all_reduce(sum);
  return sum.item<double>();
}

void descend(Parameters& parameters, double learning_rate) {
  const auto gradients = parameters.gradients();
  for (auto& [name, value] : parameters.trainable()) value.sub_(gradients.at(name), learning_rate);
}

}  // namespace

StepResult run_steps(const Graph& graph, const StepOptions& options, const Communicator& stage) {
  const StagePlan plan(graph, options.grid, options.batch, options.halo);
  const StageRunner runner(plan, stage, options.batch_norm);
  Parameters parameters(graph, plan.nodes(), options.type, options.seed);
  const int image = plan.inputs()[0], output = plan.outputs()[0];
  const Traffic before = stage.context().sent;
  StepResult result;
  for (int step = 0; step < options.steps; ++step) {
    const bool last = step + 1 == options.steps;
    const uint64_t seed = combine_keys(options.seed, static_cast<uint64_t>(step));
    const Box& box = plan.value(image).computed[stage.rank()];
    parameters.clear_gradients();
    const MemoryMeter meter;
    StageRunner::Batch batch(runner, parameters, runner.context(/*training=*/true, seed));
    Patch pixels{box, noise_pixels(box, plan.full_shape(image), seed, options.type)};
    const Patch logits = batch.forward({{image, std::move(pixels)}}).at(output);
    const at::Tensor labels = noise_labels(logits.box[0], graph.node(output).shape.channels, seed);
    const Loss loss = cross_entropy(logits.data, labels, options.batch);
    batch.backward({{output, {logits.box, loss.gradient}}});
    result.peak_bytes = meter.peak_bytes();
    if (last) {
      const Traffic after = stage.context().sent;
      result.sent = {after.messages - before.messages, after.bytes - before.bytes};
      result.loss = summed(loss.sum, stage);
      result.logits = gather(plan, output, logits, stage);
    }
    parameters.reduce_gradients(stage);
    if (!last) descend(parameters, options.learning_rate);
  }
  result.gradients = parameters.gradients();
  result.statistics = parameters.statistics();
  return result;
}

}  // namespace mpi4dl
