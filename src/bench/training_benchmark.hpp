#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/baseline_process.hpp"
#include "bench/training_report.hpp"
#include "comm/session.hpp"
#include "models/options.hpp"

namespace mpi4dl {

/// Says what a layout is measured against.
enum class Against {
  baseline,    ///< mpi4dl-baseline: libtorch in one process, on all cores of the ranks
  one_rank,    ///< this system on the first rank alone
  design_1,    ///< the same layout without --halo-D2
  other_size,  ///< the same layout with images of another size
  nothing
};

struct TrainingBenchmarkOptions {
  Graph graph;
  ModelOptions model = {};  ///< Against::baseline: what the graph is of
  BatchShape batch = {};
  ScheduleKind schedule = ScheduleKind::gpipe;
  TrainerOptions trainer = {};
  Against against = Against::baseline;
  std::optional<Graph> other_graph = {};  ///< Against::other_size: what it trains
  TrainerOptions other_trainer = {};      ///< Against::other_size: how
  std::string baseline_dtype = "float32";
  std::string gemm_dtype = "float32";
  int warmup = 2;
  int iterations = 5;
};

/// Trains a layout and what it is measured against in alternating rounds, on the same cores of the
/// same machine, so that whatever else slows it down slows both. Every rank has one.
class TrainingBenchmark {
 public:
  /// Takes a first step on both sides. Collective over the world, as is each call below.
  TrainingBenchmark(const Session& session, const Layout& layout, TrainingBenchmarkOptions options);

  TrainingFigures run();

  /// Takes a few more steps, which the first rank profiles; returns its seconds and operators.
  std::pair<double, std::vector<OperatorProfile::Line>> profile();

  const Graph& graph() const { return options_.graph; }
  /// Returns the cores of this node that ranks may use.
  const std::vector<int>& cores() const { return cores_; }
  /// Returns how many steps a round of the other side has.
  int other_steps() const { return other_steps_; }

 private:
  Work work() const;
  void add_other_side();
  std::function<void()> other_round();
  std::function<void()> ask_baseline(const char* command, double& most);
  void measure_gemm(TrainingFigures& figures);

  const Session& session_;
  const Communicator& world_;
  Layout layout_;
  TrainingBenchmarkOptions options_;
  std::vector<int> cores_;
  std::optional<Communicator> alone_;  // the first rank
  int other_steps_ = 1;                // of a round
  double other_share_ = 1;             // pixels of its round, over those of a measured step
  std::optional<TrainingSide> measured_, other_;
  std::optional<BaselineProcess> baseline_;  // on the first rank
};

}  // namespace mpi4dl
