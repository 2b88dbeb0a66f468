#pragma once

#include <optional>
#include <string>

#include "base/stopwatch.hpp"
#include "comm/session.hpp"
#include "report/progress.hpp"
#include "report/run_directory.hpp"
#include "report/step_log.hpp"

namespace mpi4dl {

struct RunReportOptions {
  std::string json_log = {};  ///< empty: none
  std::string run_dir = {};   ///< empty: none
  std::string config = {};    ///< for the run directory
  std::string replay = {};    ///< likewise: flags that repeat the run
  bool resumed = false;       ///< it continues an earlier run
  int64_t steps_done = 0;     ///< by the earlier run
};

/// Tells how a run goes: people on the terminal, programs in files. Every rank has one, the first
/// one speaks.
class RunReports {
 public:
  /// Throws UsageError where a file cannot be written. Collective over the world.
  RunReports(const Session& session, const RunReportOptions& options);

  /// Tells of a step. Collective over the world, as is end_run().
  void step(StepRecord record, const StepReport& report);
  void evaluation(const EvaluationRecord& record);
  void end_epoch();
  void end_run();

  /// Returns the most that activations took on this rank.
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  const Session& session_;
  Stopwatch watch_;
  Progress progress_{stdout};
  std::optional<StepLog> log_;             // on the first rank
  std::optional<RunDirectory> directory_;  // on the first rank
  std::optional<EvaluationRecord> evaluation_;
  int64_t peak_bytes_ = 0;
};

}  // namespace mpi4dl
