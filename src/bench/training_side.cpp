#include "bench/training_side.hpp"

#include <ATen/ATen.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "comm/memory_meter.hpp"

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
  const MemoryMeter meter;
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
  costs_.seconds += seconds_since(start);
  costs_.cpu += cpu_seconds() - cpu;
  costs_.communication += context_.idle.communication - before.communication;
  costs_.waiting += context_.idle.waiting - before.waiting;
  costs_.peak_bytes = std::max(costs_.peak_bytes, held_bytes_ + report.peak_bytes);
}

double take_turn(const Communicator& world, const std::function<void()>& step) {
  world.barrier();
  const auto start = Clock::now();
  if (step) step();
  at::Tensor slowest = at::full({1}, step ? seconds_since(start) : 0, at::kDouble);
  Pending everybody = world.start_all_reduce(slowest, Reduction::max);
  while (!step && !everybody.ready()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  everybody.finish();
  return slowest.item<double>();
}

}  // namespace mpi4dl
