#include "ops/stage_runner.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/error.hpp"
#include "ops/padding.hpp"
#include "plan/recompute.hpp"

namespace mpi4dl {
namespace {

Patch empty_patch(const Box& box, c10::ScalarType type) {
  return {box, at::empty(box.shape(), at::TensorOptions(type).memory_format(memory_format(box)))};
}

/// A sum over a larger box, with zeros around it.
void widen(Patch& sum, const Box& box) {
  if (sum.box == box) return;
  const Patch wide = empty_patch(box, sum.data.scalar_type());
  for (const Box& rest : difference(box, sum.box)) wide.view(rest).zero_();
  wide.view(sum.box).copy_(sum.data);
  sum = wide;
}

/// `sum += gradient`, each on a box of its own inside `whole`. What somebody else may have too is
/// not written into; the first contribution is taken as it is, and the sum covers no more than was
/// added to it.
void accumulate(Patch& sum, const Box& whole, const Box& part, at::Tensor gradient) {
  if (part.empty()) return;
  if (!sum.data.defined()) {
    sum = {part, std::move(gradient)};
    return;
  }
  if (sum.box.contains(part) && sole_owner(sum.data)) {
    sum.view(part).add_(gradient);
  } else if (part.contains(sum.box) && sole_owner(gradient)) {
    Patch larger{part, std::move(gradient)};
    larger.view(sum.box).add_(sum.data);
    sum = std::move(larger);
  } else if (part == sum.box) {
    sum.data = sum.data + gradient;
  } else {
    widen(sum, whole);
    if (!sole_owner(sum.data)) sum.data = sum.data.clone();
    sum.view(part).add_(gradient);
  }
}

}  // namespace

StageRunner::StageRunner(const StagePlan& plan, const Communicator& stage, BatchNormScope scope,
                         std::optional<Communicator> replicas, bool recompute)
    : plan_(plan),
      stage_(stage),
      tiles_(stage.split(plan.grid().place(stage.rank()).batch)),
      replicas_(std::move(replicas)),
      scope_(scope),
      recompute_(recompute),
      segments_(plan, recompute ? recomputed_cells(plan) : std::vector{plan.cells()}) {
  ensure(stage.size() == plan.grid().size(), "a plan for {} ranks cannot run on {}",
         plan.grid().size(), stage.size());
  make_redistributions();
}

void StageRunner::make_redistributions() {
  const Graph& graph = plan_.graph();
  exchanges_.resize(graph.nodes().size());
  poolings_.resize(graph.nodes().size());
  for (const int id : plan_.nodes()) {
    const Node& node = graph.node(id);
    const ValuePlan& value = plan_.value(id);
    if (value.exchanged())
      exchanges_[id] = std::make_unique<Redistribution>(
          stage_, one_box_each(value.owned), one_box_each(value.extended), "halo of " + node.name);
    if (std::holds_alternative<GlobalAvgPool>(node.op))
      poolings_[id] = std::make_unique<Redistribution>(
          stage_, one_box_each(value.owned), one_box_each(pooling_parts(plan_, id)), node.name);
  }
}

RunContext StageRunner::context(bool training, uint64_t dropout_seed) const {
  RunContext context{.training = training, .dropout_seed = dropout_seed};
  if (scope_ == BatchNormScope::global) context.statistics = &stage_;
  if (scope_ == BatchNormScope::replicas) context.statistics = replicas_ ? &*replicas_ : &stage_;
  context.tiles = &*tiles_;
  return context;
}

StageRunner::Batch::Batch(const StageRunner& runner, Parameters& parameters, RunContext context)
    : runner_(runner), parameters_(parameters), context_(std::move(context)) {
  const size_t nodes = runner.plan_.graph().nodes().size();
  values_.resize(nodes);
  gradients_.resize(nodes);
  tapes_.resize(nodes);
  read_boxes_.resize(nodes);
  for (const Readers& readers : runner.segments_.readers) readers_.push_back(readers.all);
  not_gone_back_.resize(nodes, 0);
  for (const int id : runner.plan_.nodes())
    if (!runner.plan_.value(id).runs_in_reader)
      for (const Edge& edge : runner.plan_.value(id).reads) ++not_gone_back_[edge.from];
  if (recomputes())
    for (const Segment& segment : runner.segments_.list)
      for (const int id : segment.first_reads) ++readers_[id];  // until that segment has gone back
}

std::map<int, Patch> StageRunner::Batch::forward(std::map<int, Patch> inputs) {
  const at::AutoDispatchBelowADInplaceOrView nothing_recorded;
  const StagePlan& plan = runner_.plan_;
  for (const int id : plan.inputs()) {
    values_[id].local = std::move(inputs.at(id));
    type_ = values_[id].local.data.scalar_type();
  }
  for (const int id : plan.nodes()) {
    if (plan.value(id).runs_in_reader) continue;
    TileResult result = run_node(id);
    parameters_.add_statistics(plan.work(id), result.statistics, plan.batch());
    if (context_.first_bad_cell != nullptr) inspect(id);
    if (context_.backward && !recomputes()) keep(id, std::move(result));
    if (runner_.exchanges_[id]) exchange(id, runner_.segments_.readers[id].local);
    for (const Edge& edge : plan.value(id).reads) count_reading(edge.from);
  }
  std::map<int, Patch> outputs;
  for (const int id : plan.outputs()) {
    const Box& owned = plan.value(id).owned[runner_.rank()];
    outputs[id] = {owned, values_[id].local.view(owned)};
    count_reading(id);
  }
  return outputs;
}

void StageRunner::Batch::inspect(int id) {
  const at::Tensor& values = values_[id].local.data;
  std::optional<int>& bad = *context_.first_bad_cell;
  const int cell = runner_.plan_.graph().node(id).cell;
  if ((!bad || cell < *bad) && !values.isfinite().all().item<bool>()) bad = cell;
}

void StageRunner::Batch::count_reading(int id) {
  if (--readers_[id] > 0) return;
  runner_.stage_.context().forget_taken();  // so that the next value finds free memory
  if (makers_.contains(id)) let_go(id);
  values_[id] = {};
}

/// Frees the memory of a value whose readers still have it on their tapes.
void StageRunner::Batch::let_go(int id) {
  Values& here = values_[id];
  if (here.flight) here.flight->finish();  // no other rank reads it any more
  const Patch& all = here.room.data.defined() ? here.room : here.local;
  auto make = makers_.extract(id).mapped();
  if (!all.data.is_cpu()) return;
  const StagePlan& plan = runner_.plan_;
  remade_.try_emplace(id, all, plan.value(id).computed[runner_.rank()],
                      Box::whole(plan.full_shape(id)), std::move(make));
}

void StageRunner::Batch::make_again(int id) {
  if (const auto value = remade_.extract(id); !value.empty()) value.mapped().make_again();
}

void StageRunner::Batch::keep(int id, TileResult result) {
  tapes_[id] = std::move(result.tape);
  if (runner_.plan_.remade(id, runner_.rank())) makers_[id] = std::move(result.remake);
}

/// A segment once more, from the kept values of earlier ones, for its tapes alone: what only later
/// segments read is not exchanged again.
void StageRunner::Batch::run_again(const Segment& segment) {
  const Segments& segments = runner_.segments_;
  for (const int id : segment.nodes) readers_[id] = segments.inside[id].all;
  for (const int id : segment.nodes) {
    if (runner_.plan_.value(id).runs_in_reader) continue;
    keep(id, run_node(id));
    const Readers& here = segments.inside[id];
    if (here.extended > 0) exchange(id, here.local);
    if (here.all == 0) values_[id] = {}, makers_.erase(id);
    for (const Edge& edge : runner_.plan_.value(id).reads)
      if (segments.together(edge.from, id)) count_reading(edge.from);
  }
}

TileResult StageRunner::Batch::run_node(int id) {
  const StagePlan& plan = runner_.plan_;
  const int work = plan.work(id);
  const Node& node = plan.graph().node(work);
  const ValuePlan& value = plan.value(id);
  const Box& output = value.computed[runner_.rank()];
  read_boxes_[id].clear();
  if (output.empty() && !collective(node.op)) {
    for (const Edge& edge : value.reads) await_halo(edge.from);
    values_[id].local = empty_patch(output, type_);
    return {};
  }
  TileRun tile{.context = context_,
               .graph = plan.graph(),
               .id = work,
               .inputs = {},
               .rooms = {},
               .target = {},
               .output = output,
               .owned = value.owned[runner_.rank()],
               .parameters = parameters_.of(work),
               .gradient_sums = parameters_.sums_of(work),
               .pooling = runner_.poolings_[id].get(),
               .relu = plan.ends_with_relu(id)};
  for (const Edge& edge : value.reads) {
    const Patch patch = read(edge);
    read_boxes_[id].push_back(patch.box);
    if (edge.reader != work) {
      await_halo(edge.from);
      tile.addend = patch;
      continue;
    }
    const auto& halo = values_[edge.from].flight;
    if (halo && !halo->received() && std::holds_alternative<Convolution>(node.op)) {
      tile.await_halo = [this, from = edge.from] { await_halo(from); };
      tile.there = plan.value(edge.from).owned[runner_.rank()];
    } else {
      await_halo(edge.from);
    }
    tile.inputs.push_back(patch);
    tile.rooms.push_back(plan.reads_extended(edge.from, work) ? values_[edge.from].room : Patch{});
  }
  if (value.computed_in_room(runner_.rank())) {
    make_room(id);
    tile.target = values_[id].room.view(output);
  }
  TileResult result = run(tile);
  if (tile.target.defined() && !result.output.is_same(tile.target)) {
    tile.target.copy_(result.output);
    result.output = tile.target;
  }
  values_[id].local = {output, std::move(result.output)};
  return result;
}

/// Memory for an exchanged value, with zeros outside the image.
void StageRunner::Batch::make_room(int id) {
  const ValuePlan& value = runner_.plan_.value(id);
  const int rank = runner_.rank();
  Values& here = values_[id];
  here.room = make_patch(runner_.stage_, value.room[rank], type_);
  clear_padding(here.room, Box::whole(runner_.plan_.full_shape(id)));
  const Box& extended = value.extended[rank];
  here.extended = {extended, extended.empty() ? here.room.data : here.room.view(extended)};
}

void StageRunner::Batch::exchange(int id, int local_readers) {
  Values& here = values_[id];
  const Box& owned = runner_.plan_.value(id).owned[runner_.rank()];
  if (!here.room.data.defined()) make_room(id);
  const Redistribution& halo = *runner_.exchanges_[id];
  here.flight = halo.start({owned, here.local.view(owned)}, here.extended);
  if (!halo.leaves_node()) await_halo(id);  // it is a copy, and nothing is gained by doing it later
  if (local_readers == 0) here.local = {};
}

void StageRunner::Batch::await_halo(int id) {
  if (values_[id].flight) values_[id].flight->receive();
}

/// What a node reads of one input: a view without padding.
Patch StageRunner::Batch::read(const Edge& edge) const {
  const StagePlan& plan = runner_.plan_;
  const Box box = plan.needed(edge.reader, edge.input, runner_.rank());
  if (box.empty()) return empty_patch(box, type_);
  const Values& values = values_[edge.from];
  const bool extended = plan.reads_extended(edge.from, edge.reader);
  return {box, extended ? values.extended.view(box) : values.local.view(box)};
}

std::map<int, Patch> StageRunner::Batch::backward(const std::map<int, Patch>& output_gradients,
                                                  const std::function<void(int)>& cell_done) {
  const at::AutoDispatchBelowADInplaceOrView nothing_recorded;
  const StagePlan& plan = runner_.plan_;
  const int rank = runner_.rank();
  for (const auto& [id, gradient] : output_gradients)
    accumulate(gradients_[id].local, plan.value(id).computed[rank], gradient.box, gradient.data);
  for (const Segment& segment : std::views::reverse(runner_.segments_.list)) {
    if (recomputes()) run_again(segment);
    for (size_t i = segment.nodes.size(); i-- > 0;) {
      go_back(segment.nodes[i]);
      const auto cell = [&](size_t at) { return plan.graph().node(segment.nodes[at]).cell; };
      if (cell_done && (i == 0 || cell(i - 1) != cell(i))) cell_done(cell(i));
    }
    if (recomputes())
      for (const int id : segment.first_reads) count_reading(id);
  }
  std::map<int, Patch> input_gradients;
  for (const int id : plan.inputs()) input_gradients[id] = gradient_of(id);
  return input_gradients;
}

void StageRunner::Batch::go_back(int id) {
  const StagePlan& plan = runner_.plan_;
  if (plan.value(id).runs_in_reader) return;
  const std::vector<Edge>& reads = plan.value(id).reads;
  at::Tensor gradient = gradient_of(id).data;
  gradients_[id] = {};
  Gradients result;
  if (tapes_[id]) {
    for (const Edge& edge : reads) make_again(edge.from);
    parameters_.begin_gradients(plan.work(id));
    result = tapes_[id]->backward(gradient);
    tapes_[id].reset();
    gradient.reset();
    for (size_t i = 0; i < reads.size(); ++i)
      add_gradient(reads[i], read_boxes_[id][i], std::move(result.inputs[i]));
  }
  for (const Edge& edge : reads)
    if (--not_gone_back_[edge.from] == 0) start_gradient_exchange(edge.from);
  if (result.parameters_later) result.parameters = result.parameters_later();
  parameters_.add_gradients(plan.work(id), result.parameters);
}

/// All readers have added theirs: what belongs to other ranks can go to them.
void StageRunner::Batch::start_gradient_exchange(int id) {
  if (!runner_.exchanges_[id]) return;
  const ValuePlan& value = runner_.plan_.value(id);
  const int rank = runner_.rank();
  const Box& computed = value.computed[rank];
  const Redistribution& halo = *runner_.exchanges_[id];
  Values& here = gradients_[id];
  if (here.extended.data.defined()) widen(here.extended, value.extended[rank]);
  if (!here.local.data.defined() && computed == value.owned[rank] && !computed.empty() &&
      value.extended[rank].contains(computed) && sole_owner(here.extended.data)) {
    // What others send back is added to the owned part, where it is.
    here.local = {computed, here.extended.view(computed)};
    here.flight = halo.start_adjoint(here.extended, here.local);
  } else {
    here.room = make_patch(runner_.stage_, value.owned[rank], type_);
    here.room.data.zero_();
    if (!here.extended.data.defined()) {
      here.extended = make_patch(runner_.stage_, value.extended[rank], type_);
      here.extended.data.zero_();
    }
    here.flight = halo.start_adjoint(here.extended, here.room);
  }
  if (!halo.leaves_node()) here.flight->receive();
}

/// The complete gradient of what this rank computed: its own share, and what other ranks send back.
Patch StageRunner::Batch::gradient_of(int id) {
  const ValuePlan& value = runner_.plan_.value(id);
  const int rank = runner_.rank();
  const Box& computed = value.computed[rank];
  Values& here = gradients_[id];
  if (here.flight) {
    here.flight->receive();
    here.extended = {};
    if (here.room.data.defined())
      accumulate(here.local, computed, value.owned[rank], here.room.data);
  }
  if (here.local.data.defined()) {
    widen(here.local, computed);
  } else {
    here.local = empty_patch(computed, type_);
    here.local.data.zero_();
  }
  return here.local;
}

void StageRunner::Batch::add_gradient(const Edge& edge, const Box& box, at::Tensor gradient) {
  if (box.empty()) return;
  const StagePlan& plan = runner_.plan_;
  const ValuePlan& value = plan.value(edge.from);
  Values& sums = gradients_[edge.from];
  const int rank = runner_.rank();
  if (plan.reads_extended(edge.from, edge.reader)) {
    accumulate(sums.extended, value.extended[rank], box, std::move(gradient));
  } else {
    accumulate(sums.local, value.computed[rank], box, std::move(gradient));
  }
}

}  // namespace mpi4dl
