#include "report/step_log.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "report/metrics_json.hpp"

namespace mpi4dl {

StepLog::StepLog(const std::string& file) try {
  if (!file.empty()) file_.emplace(file, AppendFile::Start::empty);
} catch (const Error& error) {
  throw UsageError(fmt::format("cannot log steps: {}", error.what()));
}

void StepLog::write(const StepRecord& record, const StepReport& report) {
  if (file_) file_->append(to_json(record, report).dump() + '\n');
}

}  // namespace mpi4dl
