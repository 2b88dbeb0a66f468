#include "cli/step_log.hpp"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "comm/memory_meter.hpp"

namespace mpi4dl {

StepLog::StepLog(const std::string& file, bool writes) : wanted_(!file.empty()) {
  if (!wanted_ || !writes) return;
  out_.open(file);
  validate(out_.good(), "cannot write to --json-log {}", file);
}

void StepLog::write(const StepRecord& record, const StepReport& report, const Communicator& world) {
  if (!wanted_) return;
  at::Tensor resident = at::full({1}, resident_bytes(), at::kLong);
  world.all_reduce(resident, Reduction::max);
  if (!out_.is_open()) return;
  out_ << nlohmann::ordered_json{{"epoch", record.epoch},
                                 {"step", record.step},
                                 {"loss", record.loss},
                                 {"accuracy", static_cast<double>(record.correct) /
                                                  static_cast<double>(record.images)},
                                 {"images_per_second", record.images_per_second()},
                                 {"seconds", record.seconds},
                                 {"learning_rate", record.learning_rate},
                                 {"peak_bytes", report.peak_bytes},
                                 {"resident_bytes", resident.item<int64_t>()},
                                 {"messages", report.sent.messages},
                                 {"bytes", report.sent.bytes}}
              .dump()
       << "\n"
       << std::flush;
}

}  // namespace mpi4dl
