#pragma once

#include <optional>
#include <string>

#include "base/stopwatch.hpp"
#include "cli/run_directory.hpp"
#include "cli/step_log.hpp"
#include "comm/session.hpp"
#include "report/progress.hpp"

namespace mpi4dl {

struct ReportOptions {
  std::string json_log = {};  ///< empty: none
  std::string run_dir = {};   ///< empty: none
  std::string config = {};    ///< for the run directory
  std::string replay = {};    ///< likewise: flags that repeat the run
  bool goes_on = false;       ///< an earlier run
  int64_t steps_done = 0;     ///< by it
};

/// All that a run tells: to people on the terminal, to programs in files. Every rank has one, the
/// first one speaks.
class Reports {
 public:
  /// Throws UsageError where a file cannot be written. Collective over the world.
  Reports(const Session& session, const ReportOptions& options);

  /// Collective over the world, as is end_run().
  void step(StepRecord record, const StepReport& report);
  void evaluation(const EvaluationRecord& record);
  void end_epoch();
  void end_run();

  /// The most that activations took on this rank.
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
