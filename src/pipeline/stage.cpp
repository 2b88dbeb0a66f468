#include "pipeline/stage.hpp"

#include <ATen/ATen.h>

#include "comm/idle_section.hpp"

namespace mpi4dl {
namespace {

Patch no_patch(int axes, c10::ScalarType type) {
  const Box box = Box::none(axes);
  return {box, at::empty(box.shape(), at::TensorOptions(type))};
}

}  // namespace

Stage::Sized::Sized(const PipelinePlan& pipeline, const Crew& crew, const StageOptions& options)
    : plan(pipeline.stages()[crew.role.stage]),
      runner(plan, crew.stage, options.batch_norm, crew.replicas, options.recompute) {
  // Every rank of the group makes every redistribution, so that all agree on their tags.
  for (const Transfer& transfer : pipeline.transfers()) {
    auto way = std::make_unique<Redistribution>(
        crew.group, pipeline.owned(transfer), pipeline.needed(transfer),
        "stage " + std::to_string(transfer.from) + " to " + std::to_string(transfer.to));
    if (transfer.to == crew.role.stage) incoming.push_back({transfer.value, std::move(way)});
    if (transfer.from == crew.role.stage) outgoing.push_back({transfer.value, std::move(way)});
  }
}

std::map<int, Patch> Stage::Arrival::take(const CommContext& context) {
  const IdleSection section(context, &IdleTime::waiting);
  for (auto& flight : flights) flight.finish();
  return std::move(values);
}

Stage::Stage(const std::vector<PipelinePlan>& plans, const Crew& crew, Parameters& parameters,
             const StageOptions& options)
    : crew_(crew), parameters_(parameters), options_(options) {
  if (!plans.empty()) stages_ahead_ = std::ssize(plans[0].stages()) - 1 - crew.role.stage;
  for (const PipelinePlan& plan : plans)
    sized_[plan.micro_batch()] = std::make_unique<Sized>(plan, crew_, options);
}

void Stage::expect_forward(int number, const MicroBatch& images) {
  const auto [place, fresh] = inputs_.try_emplace(number);
  if (!fresh) return;
  const Sized& here = sized(static_cast<int64_t>(images.size()));
  for (const Link& link : here.incoming) {
    const Box& box = here.plan.value(link.value).computed[crew_.role.tile];
    const Patch& room = place->second.values[link.value] =
        make_patch(crew_.stage, box, parameters_.type());
    place->second.flights.push_back(
        link.way->start(no_patch(box.axes(), parameters_.type()), room));
  }
}

Box Stage::image_box(int64_t images) const {
  const StagePlan& plan = sized_.at(images)->plan;
  const int image = plan.graph().input().id;
  for (const int id : plan.inputs())
    if (id == image) return plan.value(id).computed[crew_.role.tile];
  return {};
}

void Stage::forward(int number, const MicroBatch& images, const StepContext& step) {
  expect_forward(number, images);
  Sized& here = sized(static_cast<int64_t>(images.size()));
  std::map<int, Patch> inputs = inputs_.extract(number).mapped().take(crew_.group.context());
  if (const Box box = image_box(static_cast<int64_t>(images.size())); box.axes() > 0)
    inputs[here.plan.graph().input().id] = {box, step.feed.pixels(images, box)};
  auto& live = live_
                   .try_emplace(number, Live{&here,
                                             StageRunner::Batch(here.runner, parameters_,
                                                                run_context(here, images, step)),
                                             {}})
                   .first->second;
  const std::map<int, Patch> outputs = live.batch.forward(std::move(inputs));
  for (const Link& link : here.outgoing) {
    const Patch& value = outputs.at(link.value);
    send(link.way->start(value, no_patch(value.box.axes(), parameters_.type())));
  }
  if (const auto logits = outputs.find(here.plan.graph().output()); logits != outputs.end())
    live.loss_gradient = {logits->second.box, step.feed.loss_gradient(images, logits->second)};
  if (step.backward) return;
  live_.erase(number);
  limit_sending(here.outgoing.size() * static_cast<size_t>(stages_ahead_));
}

RunContext Stage::run_context(const Sized& here, const MicroBatch& images,
                              const StepContext& step) const {
  RunContext context = here.runner.context(step.training, step.dropout_seed);
  context.backward = step.backward;
  context.images = images;
  context.first_bad_cell = step.first_bad_cell;
  return context;
}

void Stage::expect_backward(int number) {
  const auto [place, fresh] = gradients_.try_emplace(number);
  if (!fresh) return;
  const Sized& here = *live_.at(number).sized;
  for (const Link& link : here.outgoing) {
    const Box& box = here.plan.value(link.value).owned[crew_.role.tile];
    Patch& sum = place->second.values[link.value];
    if (!sum.data.defined()) {
      sum = make_patch(crew_.stage, box, parameters_.type());
      sum.data.zero_();
    }
    place->second.flights.push_back(
        link.way->start_adjoint(no_patch(box.axes(), parameters_.type()), sum));
  }
}

void Stage::backward(int number, const std::function<void(int)>& cell_done) {
  expect_backward(number);
  Live& live = live_.at(number);
  std::map<int, Patch> gradients = gradients_.extract(number).mapped().take(crew_.group.context());
  if (live.loss_gradient.data.defined())
    gradients[live.sized->plan.graph().output()] = live.loss_gradient;
  std::map<int, Patch> backward = live.batch.backward(gradients, cell_done);
  for (const Link& link : live.sized->incoming) {
    const Patch& gradient = backward.at(link.value);
    send(link.way->start_adjoint(gradient, no_patch(gradient.box.axes(), parameters_.type())));
  }
  live_.erase(number);
}

/// What has arrived meanwhile is let go, so that its memory is free for the next.
void Stage::send(Redistribution::Flight flight) {
  while (!sending_.empty() && sending_.front().sent()) sending_.pop_front();
  sending_.push_back(std::move(flight));
}

/// Without backwards nothing else stops a fast stage from running far ahead of a slow one, with all
/// that it made in memory.
void Stage::limit_sending(size_t most) {
  const IdleSection section(crew_.group.context(), &IdleTime::waiting);
  while (sending_.size() > most) {
    sending_.front().finish();
    sending_.pop_front();
  }
}

void Stage::finish_sending() {
  limit_sending(0);
}

}  // namespace mpi4dl
