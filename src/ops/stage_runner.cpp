#include "ops/stage_runner.hpp"

#include <ATen/Functions.h>

#include <algorithm>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

Patch empty_patch(const Box& box, c10::ScalarType type) {
  return {box, at::empty(box.shape(), at::TensorOptions(type).memory_format(memory_format(box)))};
}

/// `sum += gradient` on a part of the sum's box; the first full contribution is taken as it is.
void accumulate(Patch& sum, const Box& whole, const Box& part, const at::Tensor& gradient) {
  if (part.empty()) return;
  if (!sum.data.defined() && part == whole) {
    sum = {whole, gradient};
    return;
  }
  // A gradient that was taken as it is may be somebody else's too: never write into it.
  Patch next = empty_patch(whole, gradient.scalar_type());
  if (sum.data.defined()) {
    next.data.copy_(sum.data);
  } else {
    next.data.zero_();
  }
  next.view(part).add_(gradient);
  sum = next;
}

}  // namespace

StageRunner::StageRunner(const StagePlan& plan, const Communicator& stage, BatchNormScope scope,
                         std::optional<Communicator> replicas)
    : plan_(plan),
      stage_(stage),
      tiles_(stage.split(plan.grid().place(stage.rank()).batch)),
      replicas_(std::move(replicas)),
      scope_(scope) {
  ensure(stage.size() == plan.grid().size(), "a plan for {} ranks cannot run on {}",
         plan.grid().size(), stage.size());
  const Graph& graph = plan.graph();
  exchanges_.resize(graph.nodes().size());
  poolings_.resize(graph.nodes().size());
  readers_.resize(graph.nodes().size(), 0);
  local_readers_.resize(graph.nodes().size(), 0);
  for (const int id : plan.nodes()) {
    const Node& node = graph.node(id);
    const ValuePlan& value = plan.value(id);
    for (const int from : node.inputs) {
      ++readers_[from];
      if (!plan.reads_extended(from, id)) ++local_readers_[from];
    }
    if (value.exchanged())
      exchanges_[id] = std::make_unique<Redistribution>(
          stage_, one_box_each(value.owned), one_box_each(value.extended), "halo of " + node.name);
    if (std::holds_alternative<GlobalAvgPool>(node.op))
      poolings_[id] = std::make_unique<Redistribution>(
          stage_, one_box_each(value.owned), one_box_each(pooling_parts(plan, id)), node.name);
  }
  for (const int id : plan.outputs()) ++readers_[id], ++local_readers_[id];
}

RunContext StageRunner::context(bool training, uint64_t dropout_seed) const {
  RunContext context{.training = training, .dropout_seed = dropout_seed};
  if (scope_ == BatchNormScope::global) context.statistics = &stage_;
  if (scope_ == BatchNormScope::replicas) context.statistics = replicas_ ? &*replicas_ : &stage_;
  context.tiles = &*tiles_;
  return context;
}

StageRunner::Batch::Batch(const StageRunner& runner, Parameters& parameters, RunContext context)
    : runner_(runner), parameters_(parameters), context_(context), readers_(runner.readers_) {
  const size_t nodes = runner.plan_.graph().nodes().size();
  values_.resize(nodes);
  gradients_.resize(nodes);
  tapes_.resize(nodes);
  read_boxes_.resize(nodes);
}

std::map<int, Patch> StageRunner::Batch::forward(std::map<int, Patch> inputs) {
  const at::NoGradGuard no_grad;
  const StagePlan& plan = runner_.plan_;
  for (const int id : plan.inputs()) {
    values_[id].local = std::move(inputs.at(id));
    type_ = values_[id].local.data.scalar_type();
  }
  for (const int id : plan.nodes()) {
    run_node(id);
    if (runner_.exchanges_[id]) exchange(id);
    free_inputs(id);
  }
  std::map<int, Patch> outputs;
  for (const int id : plan.outputs()) {
    const Box& owned = plan.value(id).owned[runner_.rank()];
    outputs[id] = {owned, values_[id].local.view(owned)};
  }
  values_.clear();
  return outputs;
}

void StageRunner::Batch::run_node(int id) {
  const StagePlan& plan = runner_.plan_;
  const Node& node = plan.graph().node(id);
  const ValuePlan& value = plan.value(id);
  const Box& output = value.computed[runner_.rank()];
  if (output.empty() && !collective(node.op)) {
    values_[id].local = empty_patch(output, type_);
    return;
  }
  TileRun tile{.context = context_,
               .graph = plan.graph(),
               .id = id,
               .inputs = {},
               .output = output,
               .owned = value.owned[runner_.rank()],
               .parameters = parameters_.of(id),
               .pooling = runner_.poolings_[id].get()};
  for (size_t input = 0; input < node.inputs.size(); ++input) {
    tile.inputs.push_back(read(id, static_cast<int>(input)));
    read_boxes_[id].push_back(tile.inputs.back().box);
  }
  TileResult result = run(tile);
  values_[id].local = {output, std::move(result.output)};
  tapes_[id] = std::move(result.tape);
}

void StageRunner::Batch::exchange(int id) {
  const ValuePlan& value = runner_.plan_.value(id);
  const int rank = runner_.rank();
  Values& here = values_[id];
  here.extended = make_patch(runner_.stage_, value.extended[rank], type_);
  here.extended.data.zero_();
  const Box& owned = value.owned[rank];
  runner_.exchanges_[id]->run({owned, here.local.view(owned)}, here.extended);
  if (runner_.local_readers_[id] == 0) here.local = {};
}

/// What a node reads of one input: a view without padding.
Patch StageRunner::Batch::read(int id, int input) const {
  const StagePlan& plan = runner_.plan_;
  const int from = plan.graph().node(id).inputs[input];
  const Box box = plan.needed(id, input, runner_.rank());
  if (box.empty()) return empty_patch(box, type_);
  const Values& values = values_[from];
  return {box, plan.reads_extended(from, id) ? values.extended.view(box) : values.local.view(box)};
}

void StageRunner::Batch::free_inputs(int id) {
  for (const int from : runner_.plan_.graph().node(id).inputs)
    if (--readers_[from] == 0) values_[from] = {};
}

std::map<int, Patch> StageRunner::Batch::backward(const std::map<int, Patch>& output_gradients) {
  const at::NoGradGuard no_grad;
  const StagePlan& plan = runner_.plan_;
  const int rank = runner_.rank();
  for (const auto& [id, gradient] : output_gradients)
    accumulate(gradients_[id].local, plan.value(id).computed[rank], gradient.box, gradient.data);
  for (auto id = plan.nodes().rbegin(); id != plan.nodes().rend(); ++id) {
    const Patch gradient = gradient_of(*id);
    gradients_[*id] = {};
    if (!tapes_[*id]) continue;
    const Gradients result = tapes_[*id]->backward(gradient.data);
    tapes_[*id].reset();
    parameters_.add_gradients(*id, result.parameters);
    const std::vector<int>& inputs = plan.graph().node(*id).inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      add_gradient(inputs[i], *id, read_boxes_[*id][i], result.inputs[i]);
  }
  std::map<int, Patch> input_gradients;
  for (const int id : plan.inputs()) input_gradients[id] = gradient_of(id);
  return input_gradients;
}

/// The complete gradient of what this rank computed: its own share, and what other ranks send back.
Patch StageRunner::Batch::gradient_of(int id) {
  const ValuePlan& value = runner_.plan_.value(id);
  const int rank = runner_.rank();
  const Box& computed = value.computed[rank];
  Values& here = gradients_[id];
  if (runner_.exchanges_[id]) {
    Patch returned = make_patch(runner_.stage_, value.owned[rank], type_);
    returned.data.zero_();
    if (!here.extended.data.defined()) {
      here.extended = make_patch(runner_.stage_, value.extended[rank], type_);
      here.extended.data.zero_();
    }
    runner_.exchanges_[id]->run_adjoint(here.extended, returned);
    accumulate(here.local, computed, value.owned[rank], returned.data);
  }
  if (!here.local.data.defined()) {
    here.local = empty_patch(computed, type_);
    here.local.data.zero_();
  }
  return here.local;
}

void StageRunner::Batch::add_gradient(int producer, int consumer, const Box& box,
                                      const at::Tensor& gradient) {
  if (box.empty()) return;
  const StagePlan& plan = runner_.plan_;
  const ValuePlan& value = plan.value(producer);
  const int rank = runner_.rank();
  if (plan.reads_extended(producer, consumer)) {
    accumulate(gradients_[producer].extended, value.extended[rank], box, gradient);
  } else {
    accumulate(gradients_[producer].local, value.computed[rank], box, gradient);
  }
}

}  // namespace mpi4dl
