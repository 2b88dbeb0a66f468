#include "support/imported_step.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "comm/collectives.hpp"
#include "execute/stage_executor.hpp"
#include "support/whole_reduction.hpp"
#include "task/loss.hpp"
#include "train/weights.hpp"

namespace mpi4dl::testing {
namespace {

/// Copies the weights of the file to all parameters and statistics.
void start_from(const TensorSource& weights, const Parameters& parameters) {
  for (const auto& all : {parameters.trained(), parameters.frozen(), parameters.statistics()})
    for (const auto& [name, values] : all) copy_tensor(weights, name, values);
}

/// Returns the images in a box, channels last and on the device.
at::Tensor cut(const at::Tensor& images, const Box& box, const Backend& backend) {
  const at::Tensor part = Patch{Box::whole(images.sizes().vec()), images}.view(box);
  return backend.from_host(part.contiguous(memory_format(box)));
}

Loss loss_of(const Graph& graph, const Patch& output, const SafetensorsFile& expected,
             const Backend& backend) {
  const int64_t batch = expected.tensors().at("input").shape[0];
  const Shape& shape = graph.node(graph.output()).shape;
  if (shape.spatial()) return half_mean_square(output.data, batch, shape.elements());
  const Interval images = output.box[0];
  const at::Tensor labels = expected.read("labels").slice(0, images.begin, images.end);
  return cross_entropy(output.data, backend.from_host(labels), batch);
}

/// Returns the whole output, of which each rank has a part.
at::Tensor assemble(const Patch& part, const std::vector<int64_t>& shape,
                    const Communicator& world) {
  const at::Tensor whole = at::zeros(shape, at::kDouble);
  if (!part.box.empty()) Patch{Box::whole(shape), whole}.view(part.box).copy_(part.data);
  at::Tensor sum = whole.contiguous();
  all_reduce(sum, world);
  return sum;
}

TensorMap on_host(const TensorMap& tensors) {
  TensorMap there;
  for (const auto& [name, values] : tensors) there[name] = values.to(at::kCPU);
  return there;
}

StepResult step(const ImportedModel& model, const Grid& grid, const SafetensorsFile& expected,
                const Communicator& world) {
  const Graph& graph = model.graph;
  const Backend& backend = *world.context().backend;
  const at::Tensor images = expected.read("input").to(at::kDouble);
  const StagePlan plan(graph, grid, images.size(0), {});
  const StageExecutor executor(plan, world, BatchNormScope::global);
  Parameters parameters(graph, plan.nodes(), at::kDouble, /*seed=*/1, world.context().backend);
  start_from(*model.weights, parameters);
  parameters.compute_weights();
  StageExecutor::Batch batch(executor, parameters, executor.context(/*training=*/true, 1));

  const int image = plan.inputs()[0], output = plan.outputs()[0];
  const Box& box = plan.value(image).computed[world.rank()];
  const Patch result = batch.forward({{image, {box, cut(images, box, backend)}}}).at(output);
  const Loss loss = loss_of(graph, result, expected, backend);
  batch.backward({{output, {result.box, loss.gradient}}});
  reduce(parameters, world);
  parameters.update_statistics();

  at::Tensor total = loss.sum.to(at::kCPU).reshape({1});
  all_reduce(total, world);
  StepResult found;
  found.loss = total.item<double>();
  found.logits = assemble(result, plan.full_shape(output), world);
  found.gradients = on_host(parameters.gradients());
  found.statistics = on_host(parameters.statistics());
  return found;
}

/// Returns what is expected of each of these tensors, and throws Error where the file says nothing
/// of one, or something of another.
TensorMap expected_of(const TensorMap& tensors, const ImportedModel& model,
                      const SafetensorsFile& expected, const std::string& prefix) {
  TensorMap found;
  for (const auto& [name, values] : tensors) {
    const std::string* known = find_expected(model, expected, prefix, name);
    ensure(known != nullptr, "PyTorch has computed no {}{}", prefix, name);
    found[name] = expected.read(*known).reshape(values.sizes());
  }
  // An auxiliary head, which the loss does not read, moves its statistics in Python all the same.
  const auto is_left_out = [&](const std::string& name) {
    return prefix == "stat/" &&
           std::ranges::find(model.carried, name.substr(prefix.size())) != model.carried.end();
  };
  size_t there = 0;
  for (const auto& [name, info] : expected.tensors())
    there += name.starts_with(prefix) && !is_left_out(name) ? 1 : 0;
  ensure(there == found.size(), "PyTorch has computed {} tensors {}..., and we {}", there, prefix,
         found.size());
  return found;
}

}  // namespace

const std::string* find_expected(const ImportedModel& model, const SafetensorsFile& expected,
                                 const std::string& prefix, const std::string& name) {
  std::vector<std::string> names = {name};
  if (const auto known = model.aliases.find(name); known != model.aliases.end())
    names.insert(names.end(), known->second.begin(), known->second.end());
  for (const std::string& each : names)
    if (const auto found = expected.tensors().find(prefix + each);
        found != expected.tensors().end())
      return &found->first;
  return nullptr;
}

Extents image_of(const SafetensorsFile& expected) {
  const std::vector<int64_t>& shape = expected.tensors().at("input").shape;
  return {shape.begin() + 2, shape.end()};
}

Comparison compare_with_pytorch(const ImportedModel& model, const Grid& grid,
                                const SafetensorsFile& expected, const Communicator& world) {
  StepResult mine = step(model, grid, expected, world);
  const auto has_gradient = [](const auto& entry) { return entry.first.starts_with("grad/"); };
  if (std::none_of(expected.tensors().begin(), expected.tensors().end(), has_gradient))
    mine.gradients.clear();
  StepResult theirs;
  theirs.loss = expected.read("loss").item<double>();
  theirs.logits = expected.read("output");
  theirs.gradients = expected_of(mine.gradients, model, expected, "grad/");
  theirs.statistics = expected_of(mine.statistics, model, expected, "stat/");
  return compare(mine, theirs);
}

}  // namespace mpi4dl::testing
