#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/append_file.hpp"
#include "report/run_totals.hpp"
#include "report/tensorboard.hpp"
#include "task/metrics.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// Holds an evaluation in the course of a run.
struct EvaluationRecord {
  int64_t epoch = 1;
  int64_t total_step = 0;  ///< after so many steps of the run
  Metrics metrics = {};
  double seconds = 0;
};

/// Holds what is known when a run ends.
struct RunSummary {
  RunTotals totals;
  std::optional<EvaluationRecord> evaluation;  ///< the last one
  int64_t peak_bytes = 0;                      ///< of activations, of the rank that needs most
  double seconds = 0;
};

/// Holds what a run writes down when it begins.
struct RunFiles {
  std::string config;  ///< config.json
  std::string replay;  ///< run.ini, run-00000040.ini
};

/// Writes the folder of a run, on one rank:
///
///     config.json      all flags as they were used, model, layout, version
///     run.ini          the flags that were given: mpi4dl --config run.ini train repeats the run;
///                      run-00000040.ini: those of the part that was resumed behind step 40
///     metrics.jsonl    a line for each step and for each evaluation
///     events.out.*     the same for TensorBoard
///     summary.json     what came out
class RunDirectory {
 public:
  /// Opens the folder: a new run wants one without another run's files. One that is resumed after
  /// `steps_done` steps adds to them, and removes lines of steps that will come again. Throws
  /// UsageError where the folder cannot be used.
  RunDirectory(std::string folder, bool resumed, int64_t steps_done, const RunFiles& files);

  void step(const StepRecord& record, const StepReport& report);
  void evaluation(const EvaluationRecord& record);
  void end(const RunSummary& summary);

 private:
  void open_files(int64_t steps_done, const RunFiles& files);

  std::string folder_;
  std::unique_ptr<AppendFile> metrics_;
  std::unique_ptr<TensorBoardFile> board_;
};

}  // namespace mpi4dl
