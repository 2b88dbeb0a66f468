#include "simulate/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mpi4dl {
namespace {

Action forward(int batch, int direction = 0) {
  return {Action::Kind::forward, batch, direction};
}
Action backward(int batch, int direction = 0) {
  return {Action::Kind::backward, batch, direction};
}

}  // namespace

std::string to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return "gpipe";
    case ScheduleKind::one_f_one_b:
      return "1f1b";
    case ScheduleKind::gems:
      return "gems";
  }
  return "";
}

Schedule make_schedule(ScheduleKind kind, const PipelineShape& shape, int stage) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return gpipe(shape, stage);
    case ScheduleKind::one_f_one_b:
      return one_f_one_b(shape, stage);
    case ScheduleKind::gems:
      return gems(shape.times, shape.micro_batches);
  }
  return {};
}

Schedule gpipe(const PipelineShape& shape, int /*stage*/) {
  Schedule schedule;
  for (int batch = 0; batch < shape.micro_batches; ++batch) schedule.push_back(forward(batch));
  for (int batch = 0; batch < shape.micro_batches; ++batch) schedule.push_back(backward(batch));
  return schedule;
}

Schedule one_f_one_b(const PipelineShape& shape, int stage) {
  const int ahead = std::min(shape.stages - 1 - stage, shape.micro_batches);
  Schedule schedule;
  for (int batch = 0; batch < ahead; ++batch) schedule.push_back(forward(batch));
  for (int batch = ahead; batch < shape.micro_batches; ++batch) {
    schedule.push_back(forward(batch));
    schedule.push_back(backward(batch - ahead));
  }
  for (int batch = shape.micro_batches - ahead; batch < shape.micro_batches; ++batch)
    schedule.push_back(backward(batch));
  return schedule;
}

Schedule gems(int times, int micro_batches) {
  Schedule schedule;
  for (int round = 0; round < times; ++round) {
    const int first = round * micro_batches;
    for (int batch = first; batch < first + micro_batches; ++batch)
      schedule.push_back(forward(batch, round % 2));
    for (int batch = first; batch < first + micro_batches; ++batch)
      schedule.push_back(backward(batch, round % 2));
  }
  return schedule;
}

Schedule forwards(const Schedule& schedule) {
  Schedule chosen;
  std::copy_if(schedule.begin(), schedule.end(), std::back_inserter(chosen),
               [](const Action& action) { return action.kind == Action::Kind::forward; });
  return chosen;
}

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (const Action& action : schedule)
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ",
                        action.kind == Action::Kind::forward ? "F" : "B", action.batch,
                        action.direction == 1 ? "'" : "");
  return text;
}

}  // namespace mpi4dl
