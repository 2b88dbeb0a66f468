#include "pipeline/stage.hpp"

#include <ATen/ATen.h>

#include "comm/idle_section.hpp"

namespace mpi4dl {
namespace {

/// Stands for the values that a rank does not have on its side of a transfer.
Patch no_patch(const Communicator& comm, int axes, c10::ScalarType type) {
  return comm.context().backend->empty(Box::none(axes), type);
}

}  // namespace

Stage::SizePlan::SizePlan(const PipelinePlan& pipeline, const StageGroups& groups,
                          const StageOptions& options)
    : plan(pipeline.stages()[groups.role.stage]),
      executor(plan, groups.stage, options.batch_norm, groups.replicas, options.recompute) {
  // Every rank of the group makes every redistribution, so that all agree on their tags.
  for (const Transfer& transfer : pipeline.transfers()) {
    auto way = std::make_unique<Redistribution>(groups.pipeline, pipeline.owned(transfer),
                                                pipeline.needed(transfer));
    if (transfer.to == groups.role.stage) incoming.push_back({transfer.value, std::move(way)});
    if (transfer.from == groups.role.stage) outgoing.push_back({transfer.value, std::move(way)});
  }
}

std::map<int, Patch> Stage::PendingInput::take(const CommContext& context) {
  const IdleSection section(context, &IdleTime::waiting);
  for (auto& flight : flights) flight.finish();
  return std::move(values);
}

Stage::Stage(const std::vector<PipelinePlan>& plans, const StageGroups& groups,
             Parameters& parameters, const StageOptions& options)
    : groups_(groups), parameters_(parameters), options_(options) {
  if (!plans.empty()) stages_ahead_ = std::ssize(plans[0].stages()) - 1 - groups.role.stage;
  for (const PipelinePlan& plan : plans)
    by_size_[plan.micro_batch()] = std::make_unique<SizePlan>(plan, groups_, options);
}

void Stage::expect_forward(int number, const MicroBatch& images) {
  const auto [place, fresh] = inputs_.try_emplace(number);
  if (!fresh) return;
  const SizePlan& here = size_plan(static_cast<int64_t>(images.size()));
  for (const Link& link : here.incoming) {
    const Box& box = here.plan.value(link.value).computed[groups_.role.tile];
    const Patch& input = place->second.values[link.value] =
        make_patch(groups_.stage, box, parameters_.type());
    place->second.flights.push_back(
        link.way->start(no_patch(groups_.stage, box.axes(), parameters_.type()), input));
  }
}

Box Stage::image_box(int64_t images) const {
  const StagePlan& plan = by_size_.at(images)->plan;
  const int image = plan.graph().input().id;
  for (const int id : plan.inputs())
    if (id == image) return plan.value(id).computed[groups_.role.tile];
  return {};
}

void Stage::forward(int number, const MicroBatch& images, const StepContext& step) {
  expect_forward(number, images);
  SizePlan& here = size_plan(static_cast<int64_t>(images.size()));
  std::map<int, Patch> inputs = inputs_.extract(number).mapped().take(groups_.pipeline.context());
  if (const Box box = image_box(static_cast<int64_t>(images.size())); box.axes() > 0)
    inputs[here.plan.graph().input().id] = {box, step.feed.pixels(images, box)};
  auto& in_flight =
      in_flight_
          .try_emplace(number, InFlight{&here,
                                        StageExecutor::Batch(here.executor, parameters_,
                                                             run_context(here, images, step)),
                                        {}})
          .first->second;
  const std::map<int, Patch> outputs = in_flight.batch.forward(std::move(inputs));
  for (const Link& link : here.outgoing) {
    const Patch& value = outputs.at(link.value);
    send(link.way->start(value, no_patch(groups_.stage, value.box.axes(), parameters_.type())));
  }
  if (const auto logits = outputs.find(here.plan.graph().output()); logits != outputs.end())
    in_flight.loss_gradient = {logits->second.box, step.feed.loss_gradient(images, logits->second)};
  if (step.backward) return;
  in_flight_.erase(number);
  limit_sending(here.outgoing.size() * static_cast<size_t>(stages_ahead_));
}

RunContext Stage::run_context(const SizePlan& here, const MicroBatch& images,
                              const StepContext& step) const {
  RunContext context = here.executor.context(step.training, step.dropout_seed);
  context.backward = step.backward;
  context.images = images;
  context.first_bad_cell = step.first_bad_cell;
  return context;
}

void Stage::expect_backward(int number) {
  const auto [place, fresh] = gradients_.try_emplace(number);
  if (!fresh) return;
  const SizePlan& here = *in_flight_.at(number).size_plan;
  for (const Link& link : here.outgoing) {
    const Box& box = here.plan.value(link.value).owned[groups_.role.tile];
    Patch& sum = place->second.values[link.value];
    if (!sum.data.defined()) {
      sum = make_patch(groups_.stage, box, parameters_.type());
      sum.data.zero_();
    }
    place->second.flights.push_back(
        link.way->start_adjoint(no_patch(groups_.stage, box.axes(), parameters_.type()), sum));
  }
}

void Stage::backward(int number, const std::function<void(int)>& cell_done) {
  expect_backward(number);
  InFlight& in_flight = in_flight_.at(number);
  std::map<int, Patch> gradients =
      gradients_.extract(number).mapped().take(groups_.pipeline.context());
  if (in_flight.loss_gradient.data.defined())
    gradients[in_flight.size_plan->plan.graph().output()] = in_flight.loss_gradient;
  std::map<int, Patch> backward = in_flight.batch.backward(gradients, cell_done);
  for (const Link& link : in_flight.size_plan->incoming) {
    const Patch& gradient = backward.at(link.value);
    send(link.way->start_adjoint(gradient,
                                 no_patch(groups_.stage, gradient.box.axes(), parameters_.type())));
  }
  in_flight_.erase(number);
}

/// Releases what has arrived meanwhile, so that its memory is free for the next.
void Stage::send(Redistribution::Flight flight) {
  while (!sending_.empty() && sending_.front().sent()) sending_.pop_front();
  sending_.push_back(std::move(flight));
}

/// Waits, because without backwards nothing else stops a fast stage from running far ahead of a
/// slow one, with all that it made in memory.
void Stage::limit_sending(size_t most) {
  const IdleSection section(groups_.pipeline.context(), &IdleTime::waiting);
  while (sending_.size() > most) {
    sending_.front().finish();
    sending_.pop_front();
  }
}

void Stage::finish_sending() {
  limit_sending(0);
}

}  // namespace mpi4dl
