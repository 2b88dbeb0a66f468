#include "bench/training_side.hpp"

#include <ATen/ATen.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "backend/backend.hpp"
#include "comm/collectives.hpp"
#include "comm/staging.hpp"
#include "memory/memory_meter.hpp"

namespace mpi4dl {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

TrainingSide::TrainingSide(const Graph& graph, const Layout& layout, Work work,
                           const TrainerOptions& options, const Communicator& comm)
    : context_(comm.context()),
      images_({.size = work.effective_batch,
               .classes = graph.node(graph.output()).shape.channels,
               .image = graph.shape(graph.input()),
               .seed = options.seed}) {
  const MemoryMeter meter(context_.backend->device().type());
  trainer_ = std::make_unique<Trainer>(graph, layout, std::move(work), options, comm);
  step();
  held_bytes_ = meter.live_bytes();
  clear_costs();
}

void TrainingSide::step() {
  const IdleTime before = context_.idle;
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  const StepReport report = trainer_->step(images_);
  await_device(context_);  // which may still be updating parameters
  costs_.seconds += seconds_since(start);
  costs_.cpu += cpu_seconds() - cpu;
  costs_.communication += context_.idle.communication - before.communication;
  costs_.waiting += context_.idle.waiting - before.waiting;
  costs_.peak_bytes = std::max(costs_.peak_bytes, held_bytes_ + report.peak_bytes);
}

double time_round(const Communicator& world, const std::function<void()>& round) {
  barrier(world);
  const auto start = Clock::now();
  if (round) round();
  at::Tensor slowest = at::full({1}, round ? seconds_since(start) : 0, at::kDouble);
  Pending everybody = start_all_reduce(slowest, world, {.reduction = Reduction::max});
  while (!round && !everybody.ready()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  everybody.finish();
  return slowest.item<double>();
}

}  // namespace mpi4dl
