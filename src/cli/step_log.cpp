#include "cli/step_log.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/metrics_json.hpp"

namespace mpi4dl {

StepLog::StepLog(const std::string& file) {
  if (file.empty()) return;
  out_.open(file);
  validate(out_.good(), "cannot write to --json-log {}", file);
}

void StepLog::write(const StepRecord& record, const StepReport& report) {
  if (out_.is_open()) out_ << to_json(record, report).dump() << "\n" << std::flush;
}

}  // namespace mpi4dl
