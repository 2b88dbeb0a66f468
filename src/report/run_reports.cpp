#include "report/run_reports.hpp"

#include <ATen/ATen.h>

#include "comm/agreement.hpp"
#include "comm/collectives.hpp"
#include "comm/node/resident_bytes.hpp"

namespace mpi4dl {
namespace {

int64_t most(int64_t mine, const Communicator& world) {
  at::Tensor largest = at::full({1}, mine, at::kLong);
  all_reduce(largest, world, {.reduction = Reduction::max});
  return largest.item<int64_t>();
}

}  // namespace

RunReports::RunReports(const Session& session, const RunReportOptions& options)
    : session_(session) {
  run_together(session.world(), [&] {
    if (!session.first()) return;
    log_.emplace(options.json_log);
    if (!options.run_dir.empty())
      directory_.emplace(options.run_dir, options.resumed, options.steps_done,
                         RunFiles{options.config, options.replay});
  });
}

void RunReports::step(StepRecord record, const StepReport& report) {
  peak_bytes_ = std::max(peak_bytes_, report.peak_bytes);
  record.resident_bytes = most(resident_bytes(session_.world().context()), session_.world());
  if (!session_.first()) return;
  progress_.step(record);
  log_->write(record, report);
  if (directory_) directory_->step(record, report);
}

void RunReports::evaluation(const EvaluationRecord& record) {
  if (!session_.first()) return;
  progress_.evaluation(record.metrics, record.seconds);
  if (directory_) directory_->evaluation(record);
  evaluation_ = record;
}

void RunReports::end_epoch() {
  if (session_.first()) progress_.end_epoch();
}

void RunReports::end_run() {
  const int64_t peak = most(peak_bytes_, session_.world());
  if (!session_.first()) return;
  progress_.end_run();
  if (directory_) directory_->end({progress_.totals(), evaluation_, peak, watch_.seconds()});
}

}  // namespace mpi4dl
