#include "report/metrics_json.hpp"

#include <nlohmann/json.hpp>

namespace mpi4dl {
namespace {

/// Returns null where there is none.
nlohmann::ordered_json number(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace

nlohmann::ordered_json to_json(const StepRecord& record, const StepReport& report) {
  return {{"epoch", record.epoch},
          {"step", record.step},
          {"loss", record.loss},
          {"accuracy", record.accuracy()},
          {"images_per_second", record.images_per_second()},
          {"seconds", record.seconds},
          {"learning_rate", record.learning_rate},
          {"peak_bytes", report.peak_bytes},
          {"resident_bytes", record.resident_bytes},
          {"messages", report.sent.messages},
          {"bytes", report.sent.bytes}};
}

nlohmann::ordered_json to_json(const Metrics& metrics) {
  nlohmann::ordered_json areas = nlohmann::ordered_json::array();
  for (const std::optional<double>& area : metrics.auc) areas.push_back(number(area));
  return {{"images", metrics.images},     {"loss", metrics.loss},
          {"accuracy", metrics.accuracy}, {"mean_auc", number(metrics.mean_auc())},
          {"auc", std::move(areas)},      {"confusion", metrics.confusion}};
}

}  // namespace mpi4dl
