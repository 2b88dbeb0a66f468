#include "report/run_directory.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "report/metrics_json.hpp"
#include "storage/replacement_file.hpp"

namespace mpi4dl {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kConfig = "/config.json";
constexpr const char* kMetrics = "/metrics.jsonl";
constexpr const char* kSummary = "/summary.json";

/// Returns what an interrupted run wrote, without the steps that will come again and without a line
/// that was cut off.
std::string lines_until(const std::string& file, int64_t step) {
  std::ifstream in(file);
  std::string kept, line;
  while (std::getline(in, line)) {
    const Json entry = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (entry.is_object() && entry.value("total_step", step + 1) <= step) kept += line + '\n';
  }
  return kept;
}

/// Returns the file for the flags of a run that begins behind these steps: those of the first part
/// stay where others follow.
std::string replay_file(const std::string& folder, int64_t steps_done) {
  return folder + (steps_done == 0 ? "/run.ini" : fmt::format("/run-{:08}.ini", steps_done));
}

}  // namespace

RunDirectory::RunDirectory(std::string folder, bool resumed, int64_t steps_done,
                           const RunFiles& files)
    : folder_(std::move(folder)) {
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  validate(!failure, "cannot make the run directory {}: {}", folder_, failure.message());
  validate(resumed || !std::filesystem::exists(folder_ + kConfig),
           "the run directory {} holds another run already; use a new folder, or resume that run",
           folder_);
  try {
    open_files(steps_done, files);
  } catch (const Error& error) {
    throw UsageError(
        fmt::format("cannot write to the run directory {}: {}", folder_, error.what()));
  }
}

void RunDirectory::open_files(int64_t steps_done, const RunFiles& files) {
  replace_file(folder_ + kConfig, files.config);
  replace_file(replay_file(folder_, steps_done), files.replay);
  replace_file(folder_ + kMetrics, lines_until(folder_ + kMetrics, steps_done));
  metrics_ = std::make_unique<AppendFile>(folder_ + kMetrics, AppendFile::Start::end);
  board_ = std::make_unique<TensorBoardFile>(folder_, steps_done + 1);
}

void RunDirectory::step(const StepRecord& record, const StepReport& report) {
  Json line{{"kind", "step"}, {"total_step", record.total_step()}};
  line.update(to_json(record, report));
  metrics_->append(line.dump() + '\n');
  board_->add(record.total_step(),
              {{"train/loss", record.loss},
               {"train/accuracy", record.accuracy()},
               {"train/learning_rate", record.learning_rate},
               {"speed/images_per_second", record.images_per_second()},
               {"memory/resident_bytes", static_cast<double>(record.resident_bytes)}});
}

void RunDirectory::evaluation(const EvaluationRecord& record) {
  Json line{{"kind", "evaluation"}, {"total_step", record.total_step}, {"epoch", record.epoch}};
  line.update(to_json(record.metrics));
  line["seconds"] = record.seconds;
  metrics_->append(line.dump() + '\n');
  TensorBoardFile::Scalars scalars{{"evaluation/loss", record.metrics.loss},
                                   {"evaluation/accuracy", record.metrics.accuracy}};
  if (const auto area = record.metrics.mean_auc()) scalars.emplace_back("evaluation/auc", *area);
  board_->add(record.total_step, scalars);
}

void RunDirectory::end(const RunSummary& summary) {
  const RunTotals& totals = summary.totals;
  if (totals.steps() == 0) return;  // all was done before; that summary holds
  Json result{
      {"epoch", totals.epoch().number},
      {"steps", totals.steps()},
      {"loss", totals.epoch().loss()},
      {"accuracy", totals.epoch().accuracy()},
      {"images_per_second", {{"mean", totals.mean_speed()}, {"median", totals.median_speed()}}},
      {"peak_bytes", summary.peak_bytes},
      {"resident_bytes", totals.resident_bytes()},
      {"seconds", summary.seconds}};
  if (summary.evaluation) {
    result["evaluation"] = {{"total_step", summary.evaluation->total_step}};
    result["evaluation"].update(to_json(summary.evaluation->metrics));
  }
  replace_file(folder_ + kSummary, result.dump(2) + '\n');
}

}  // namespace mpi4dl
