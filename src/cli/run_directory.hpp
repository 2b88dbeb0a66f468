#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "report/run_totals.hpp"
#include "report/tensorboard.hpp"
#include "train/metrics.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// An evaluation in the course of a run.
struct EvaluationRecord {
  int64_t epoch = 1;
  int64_t total_step = 0;  ///< after so many steps of the run
  Metrics metrics = {};
  double seconds = 0;
};

/// What is known when a run ends.
struct RunSummary {
  RunTotals totals;
  std::optional<EvaluationRecord> evaluation;  ///< the last one
  int64_t peak_bytes = 0;                      ///< of activations, of the rank that needs most
  double seconds = 0;
};

/// The folder of a run, which one rank writes:
///
///     config.json      all flags as they were used, model, layout, version
///     metrics.jsonl    a line for each step and for each evaluation
///     events.out.*     the same for TensorBoard
///     summary.json     what came out
class RunDirectory {
 public:
  /// A new run wants a folder without another one's files. One that goes on after `steps_done`
  /// steps adds to them, and removes lines of steps that will come again. Throws UsageError where
  /// the folder cannot be used.
  RunDirectory(std::string folder, bool goes_on, int64_t steps_done, const std::string& config);

  void step(const StepRecord& record, const StepReport& report);
  void evaluation(const EvaluationRecord& record);
  void end(const RunSummary& summary);

 private:
  void open_files(int64_t steps_done, const std::string& config);
  void write_line(const std::string& line);

  std::string folder_;
  std::ofstream metrics_;
  std::unique_ptr<TensorBoardFile> board_;
};

}  // namespace mpi4dl
