#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/step_record.hpp"
#include "task/metrics.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// Returns what programs read of a step and of an evaluation.
nlohmann::ordered_json to_json(const StepRecord& record, const StepReport& report);
nlohmann::ordered_json to_json(const Metrics& metrics);

}  // namespace mpi4dl
