#include "execute/stage_executor.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/error.hpp"
#include "execute/padding.hpp"
#include "plan/recompute.hpp"

namespace mpi4dl {
namespace {

/// Widens a sum to a larger box, with zeros around it.
void widen(Patch& sum, const Box& box) {
  if (sum.box == box) return;
  const Patch wide{box,
                   at::empty(box.shape(), sum.data.options().memory_format(memory_format(box)))};
  for (const Box& rest : difference(box, sum.box)) wide.view(rest).zero_();
  wide.view(sum.box).copy_(sum.data);
  sum = wide;
}

/// Computes `sum += gradient`, each on a box of its own inside `whole`. What somebody else may have
/// too is not written into; the first contribution is taken as it is, and the sum covers no more
/// than was added to it.
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

StageExecutor::StageExecutor(const StagePlan& plan, const Communicator& stage, BatchNormScope scope,
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

void StageExecutor::make_redistributions() {
  const Graph& graph = plan_.graph();
  exchanges_.resize(graph.nodes().size());
  poolings_.resize(graph.nodes().size());
  pooled_parts_.resize(graph.nodes().size());
  for (const int id : plan_.nodes()) {
    const ValuePlan& value = plan_.value(id);
    if (value.exchanged())
      exchanges_[id] = std::make_unique<Redistribution>(stage_, one_box_each(value.owned),
                                                        one_box_each(value.extended));
    if (!plan_.pools(id)) continue;
    const std::vector<Box> parts = pooling_parts(plan_, id);
    pooled_parts_[id] = parts[rank()];
    poolings_[id] =
        std::make_unique<Redistribution>(stage_, one_box_each(value.owned), one_box_each(parts));
  }
}

Interval StageExecutor::images() const {
  const Grid by_batch{.batch = plan_.grid().batch};
  return by_batch.owned(std::array{plan_.batch(), int64_t{1}}, plan_.grid().place(rank()).batch)[0];
}

RunContext StageExecutor::context(bool training, uint64_t dropout_seed) const {
  RunContext context{.backend = stage_.context().backend.get(),
                     .training = training,
                     .dropout_seed = dropout_seed};
  if (scope_ == BatchNormScope::global) context.statistics = &stage_;
  if (scope_ == BatchNormScope::replicas) context.statistics = replicas_ ? &*replicas_ : &stage_;
  context.tiles = &*tiles_;
  return context;
}

StageExecutor::Batch::Batch(const StageExecutor& executor, Parameters& parameters,
                            RunContext context)
    : executor_(executor), parameters_(parameters), context_(std::move(context)) {
  const size_t nodes = executor.plan_.graph().nodes().size();
  values_.resize(nodes);
  gradients_.resize(nodes);
  tapes_.resize(nodes);
  read_boxes_.resize(nodes);
  for (const Readers& readers : executor.segments_.readers) readers_.push_back(readers.all);
  pending_consumers_.resize(nodes, 0);
  for (const int id : executor.plan_.nodes())
    if (!executor.plan_.value(id).fused_into_consumer)
      for (const Edge& edge : executor.plan_.value(id).reads) ++pending_consumers_[edge.from];
  if (recomputes())
    for (const Segment& segment : executor.segments_.list)
      for (const int id : segment.first_reads) ++readers_[id];  // until that segment's backward
}

std::map<int, Patch> StageExecutor::Batch::forward(std::map<int, Patch> inputs) {
  const at::AutoDispatchBelowADInplaceOrView nothing_recorded;
  const StagePlan& plan = executor_.plan_;
  for (const int id : plan.inputs()) {
    values_[id].local = std::move(inputs.at(id));
    type_ = values_[id].local.data.scalar_type();
  }
  for (const int id : plan.nodes()) {
    if (plan.value(id).fused_into_consumer) continue;
    TileResult result = run_node(id);
    parameters_.add_statistics(plan.anchor(id), result.statistics, plan.batch());
    if (context_.first_bad_cell != nullptr) inspect(id);
    if (context_.backward && !recomputes()) keep(id, std::move(result));
    if (executor_.exchanges_[id]) exchange(id, executor_.segments_.readers[id].local);
    for (const Edge& edge : plan.value(id).reads) count_reading(edge.from);
  }
  std::map<int, Patch> outputs;
  for (const int id : plan.outputs()) {
    const Box& owned = plan.value(id).owned[executor_.rank()];
    outputs[id] = {owned, values_[id].local.view(owned)};
    count_reading(id);
  }
  return outputs;
}

void StageExecutor::Batch::inspect(int id) {
  const at::Tensor& values = values_[id].local.data;
  std::optional<int>& bad = *context_.first_bad_cell;
  const int cell = executor_.plan_.graph().node(id).cell;
  if ((!bad || cell < *bad) && !values.isfinite().all().item<bool>()) bad = cell;
}

void StageExecutor::Batch::count_reading(int id) {
  if (--readers_[id] > 0) return;
  executor_.stage_.context().release_acknowledged();  // so that the next value finds free memory
  if (rematerialisers_.contains(id)) release(id);
  values_[id] = {};
}

/// Frees the memory of a value whose readers still have it on their tapes.
void StageExecutor::Batch::release(int id) {
  Values& here = values_[id];
  if (here.flight) here.flight->finish();  // no other rank reads it any more
  const Patch& all = here.halo_buffer.data.defined() ? here.halo_buffer : here.local;
  auto make = rematerialisers_.extract(id).mapped();
  const StagePlan& plan = executor_.plan_;
  rematerialised_.try_emplace(id, backend(), all, plan.value(id).computed[executor_.rank()],
                              Box::whole(plan.full_shape(id)), std::move(make));
}

void StageExecutor::Batch::rematerialise(int id) {
  if (const auto value = rematerialised_.extract(id); !value.empty())
    value.mapped().rematerialise();
}

void StageExecutor::Batch::keep(int id, TileResult result) {
  tapes_[id] = std::move(result.tape);
  if (executor_.plan_.rematerialised(id, executor_.rank()))
    rematerialisers_[id] = std::move(result.rematerialise);
}

/// Runs a segment once more, from the kept values of earlier ones, for its tapes alone: what only
/// later segments read is not exchanged again.
void StageExecutor::Batch::recompute(const Segment& segment) {
  const Segments& segments = executor_.segments_;
  for (const int id : segment.nodes) readers_[id] = segments.inside[id].all;
  for (const int id : segment.nodes) {
    if (executor_.plan_.value(id).fused_into_consumer) continue;
    keep(id, run_node(id));
    const Readers& here = segments.inside[id];
    if (here.extended > 0) exchange(id, here.local);
    if (here.all == 0) values_[id] = {}, rematerialisers_.erase(id);
    for (const Edge& edge : executor_.plan_.value(id).reads)
      if (segments.together(edge.from, id)) count_reading(edge.from);
  }
}

TileResult StageExecutor::Batch::run_node(int id) {
  const StagePlan& plan = executor_.plan_;
  const int anchor = plan.anchor(id);
  const Node& node = plan.graph().node(anchor);
  const ValuePlan& value = plan.value(id);
  const Box& output = value.computed[executor_.rank()];
  read_boxes_[id].clear();
  if (output.empty() && !properties(node.op).collective) {
    for (const Edge& edge : value.reads) await_halo(edge.from);
    values_[id].local = backend().empty(output, type_);
    return {};
  }
  TileRun tile{.context = context_,
               .graph = plan.graph(),
               .id = anchor,
               .inputs = {},
               .halo_buffers = {},
               .target = {},
               .output = output,
               .owned = value.owned[executor_.rank()],
               .parameters = parameters_.of(anchor),
               .gradient_sums = parameters_.sums_of(anchor),
               .pooling = executor_.poolings_[id].get(),
               .pooled_part = executor_.pooled_parts_[id],
               .images = executor_.images(),
               .relu = plan.ends_with_relu(id)};
  for (const Edge& edge : value.reads) {
    const Patch patch = read(edge);
    read_boxes_[id].push_back(patch.box);
    if (edge.reader != anchor) {
      await_halo(edge.from);
      tile.residual = patch;
      continue;
    }
    const auto& halo = values_[edge.from].flight;
    if (halo && !halo->received() && properties(node.op).overlaps_halo) {
      tile.await_halo = [this, from = edge.from] { await_halo(from); };
      tile.there = plan.value(edge.from).owned[executor_.rank()];
    } else {
      await_halo(edge.from);
    }
    tile.inputs.push_back(patch);
    tile.halo_buffers.push_back(plan.reads_extended(edge.from, anchor)
                                    ? values_[edge.from].halo_buffer
                                    : values_[edge.from].local);
  }
  if (value.computed_in_halo_buffer(executor_.rank())) {
    allocate_halo_buffer(id);
    tile.target = values_[id].halo_buffer.view(output);
  }
  TileResult result = run(tile);
  if (tile.target.defined() && !result.output.is_same(tile.target)) {
    tile.target.copy_(result.output);
    result.output = tile.target;
  }
  values_[id].local = {output, std::move(result.output)};
  return result;
}

/// Allocates memory for an exchanged value, with zeros outside the image, and on a device in the
/// halo too.
void StageExecutor::Batch::allocate_halo_buffer(int id) {
  const ValuePlan& value = executor_.plan_.value(id);
  const int rank = executor_.rank();
  Values& here = values_[id];
  here.halo_buffer = make_patch(executor_.stage_, value.padded[rank], type_);
  // A device convolves the buffer before the halo has come, and then its border once more; kernels
  // of libtorch may multiply what they do not need by zero, which makes a NaN of one.
  const Box image = Box::whole(executor_.plan_.full_shape(id));
  clear_padding(backend(), here.halo_buffer, backend().on_host() ? image : value.owned[rank]);
  const Box& extended = value.extended[rank];
  here.extended = {extended,
                   extended.empty() ? here.halo_buffer.data : here.halo_buffer.view(extended)};
}

void StageExecutor::Batch::exchange(int id, int local_readers) {
  Values& here = values_[id];
  const Box& owned = executor_.plan_.value(id).owned[executor_.rank()];
  if (!here.halo_buffer.data.defined()) allocate_halo_buffer(id);
  const Redistribution& halo = *executor_.exchanges_[id];
  here.flight = halo.start({owned, here.local.view(owned)}, here.extended);
  if (!halo.leaves_node()) await_halo(id);  // it is a copy, and nothing is gained by doing it later
  if (local_readers == 0) here.local = {};
}

void StageExecutor::Batch::await_halo(int id) {
  if (values_[id].flight) values_[id].flight->receive();
}

/// Returns what a node reads of one input: a view without padding.
Patch StageExecutor::Batch::read(const Edge& edge) const {
  const StagePlan& plan = executor_.plan_;
  const Box box = plan.needed(edge.reader, edge.input, executor_.rank());
  if (box.empty()) return backend().empty(box, type_);
  const Values& values = values_[edge.from];
  const bool extended = plan.reads_extended(edge.from, edge.reader);
  return {box, extended ? values.extended.view(box) : values.local.view(box)};
}

std::map<int, Patch> StageExecutor::Batch::backward(const std::map<int, Patch>& output_gradients,
                                                    const std::function<void(int)>& cell_done) {
  const at::AutoDispatchBelowADInplaceOrView nothing_recorded;
  const StagePlan& plan = executor_.plan_;
  const int rank = executor_.rank();
  for (const auto& [id, gradient] : output_gradients)
    accumulate(gradients_[id].local, plan.value(id).computed[rank], gradient.box, gradient.data);
  for (const Segment& segment : std::views::reverse(executor_.segments_.list)) {
    if (recomputes()) recompute(segment);
    for (size_t i = segment.nodes.size(); i-- > 0;) {
      backward_node(segment.nodes[i]);
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

void StageExecutor::Batch::backward_node(int id) {
  const StagePlan& plan = executor_.plan_;
  if (plan.value(id).fused_into_consumer) return;
  const std::vector<Edge>& reads = plan.value(id).reads;
  at::Tensor gradient = gradient_of(id).data;
  gradients_[id] = {};
  Gradients result;
  if (tapes_[id]) {
    for (const Edge& edge : reads) rematerialise(edge.from);
    parameters_.begin_gradients(plan.anchor(id));
    result = tapes_[id]->backward(gradient);
    tapes_[id].reset();
    gradient.reset();
    for (size_t i = 0; i < reads.size(); ++i)
      add_gradient(reads[i], read_boxes_[id][i], std::move(result.inputs[i]));
  }
  for (const Edge& edge : reads)
    if (--pending_consumers_[edge.from] == 0) start_gradient_exchange(edge.from);
  if (result.parameters_later) result.parameters = result.parameters_later();
  parameters_.add_gradients(plan.anchor(id), result.parameters);
}

/// Sends other ranks what belongs to them, once all readers have added their gradients.
void StageExecutor::Batch::start_gradient_exchange(int id) {
  if (!executor_.exchanges_[id]) return;
  const ValuePlan& value = executor_.plan_.value(id);
  const int rank = executor_.rank();
  const Box& computed = value.computed[rank];
  const Redistribution& halo = *executor_.exchanges_[id];
  Values& here = gradients_[id];
  if (here.extended.data.defined()) widen(here.extended, value.extended[rank]);
  if (!here.local.data.defined() && computed == value.owned[rank] && !computed.empty() &&
      value.extended[rank].contains(computed) && sole_owner(here.extended.data)) {
    // What others send back is added to the owned part, where it is.
    here.local = {computed, here.extended.view(computed)};
    here.flight = halo.start_adjoint(here.extended, here.local);
  } else {
    here.halo_buffer = make_patch(executor_.stage_, value.owned[rank], type_);
    here.halo_buffer.data.zero_();
    if (!here.extended.data.defined()) {
      here.extended = make_patch(executor_.stage_, value.extended[rank], type_);
      here.extended.data.zero_();
    }
    here.flight = halo.start_adjoint(here.extended, here.halo_buffer);
  }
  if (!halo.leaves_node()) here.flight->receive();
}

/// Returns the complete gradient of what this rank computed: its own share, and what other ranks
/// send back.
Patch StageExecutor::Batch::gradient_of(int id) {
  const ValuePlan& value = executor_.plan_.value(id);
  const int rank = executor_.rank();
  const Box& computed = value.computed[rank];
  Values& here = gradients_[id];
  if (here.flight) {
    here.flight->receive();
    here.extended = {};
    if (here.halo_buffer.data.defined())
      accumulate(here.local, computed, value.owned[rank], here.halo_buffer.data);
  }
  if (here.local.data.defined()) {
    widen(here.local, computed);
  } else {
    here.local = backend().empty(computed, type_);
    here.local.data.zero_();
  }
  return here.local;
}

void StageExecutor::Batch::add_gradient(const Edge& edge, const Box& box, at::Tensor gradient) {
  if (box.empty()) return;
  const StagePlan& plan = executor_.plan_;
  const ValuePlan& value = plan.value(edge.from);
  Values& sums = gradients_[edge.from];
  const int rank = executor_.rank();
  if (plan.reads_extended(edge.from, edge.reader)) {
    accumulate(sums.extended, value.extended[rank], box, std::move(gradient));
  } else {
    accumulate(sums.local, value.computed[rank], box, std::move(gradient));
  }
}

}  // namespace mpi4dl
