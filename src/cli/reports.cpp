#include "cli/reports.hpp"

#include <ATen/ATen.h>

#include "comm/agreement.hpp"
#include "comm/memory_meter.hpp"

namespace mpi4dl {
namespace {

int64_t most(int64_t mine, const Communicator& world) {
  at::Tensor largest = at::full({1}, mine, at::kLong);
  world.all_reduce(largest, Reduction::max);
  return largest.item<int64_t>();
}

}  // namespace

Reports::Reports(const Session& session, const ReportOptions& options) : session_(session) {
  run_together(session.world(), [&] {
    if (!session.first()) return;
    log_.emplace(options.json_log);
    if (!options.run_dir.empty())
      directory_.emplace(options.run_dir, options.goes_on, options.steps_done,
                         RunFiles{options.config, options.replay});
  });
}

void Reports::step(StepRecord record, const StepReport& report) {
  peak_bytes_ = std::max(peak_bytes_, report.peak_bytes);
  record.resident_bytes = most(resident_bytes(session_.world().context()), session_.world());
  if (!session_.first()) return;
  progress_.step(record);
  log_->write(record, report);
  if (directory_) directory_->step(record, report);
}

void Reports::evaluation(const EvaluationRecord& record) {
  if (!session_.first()) return;
  progress_.evaluation(record.metrics, record.seconds);
  if (directory_) directory_->evaluation(record);
  evaluation_ = record;
}

void Reports::end_epoch() {
  if (session_.first()) progress_.end_epoch();
}

void Reports::end_run() {
  const int64_t peak = most(peak_bytes_, session_.world());
  if (!session_.first()) return;
  progress_.end_run();
  if (directory_) directory_->end({progress_.totals(), evaluation_, peak, watch_.seconds()});
}

}  // namespace mpi4dl
