#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/operator_profile.hpp"
#include "bench/training_side.hpp"

namespace mpi4dl {

/// Holds what one rank has measured; trivially copyable, so that it can be gathered.
struct RankFigures {
  StepCosts costs;             ///< of all timed steps
  int64_t resident_bytes = 0;  ///< what its process has after all steps
  int threads = 1;
};

/// Holds what `mpi4dl bench train` has measured, of the layout and of the other side.
struct TrainingFigures {
  std::string other = {};  ///< "baseline", "one rank", ...; empty: there was none
  std::vector<double> seconds = {}, other_seconds = {};  ///< of each step
  int64_t images = 1;                                    ///< of a step
  double flops = 0;                                      ///< of a step, forward and backward
  double gemm_gflops = 0;
  std::string gemm_type = {};
  double other_memory = 0;  ///< bytes of its process; 0: it has none of its own
  std::vector<RankFigures> ranks = {};
};

nlohmann::ordered_json to_json(const TrainingFigures& figures);
void print(const TrainingFigures& figures);

/// Reports the time by operator of `steps` steps that took `seconds` together.
nlohmann::ordered_json to_json(const std::vector<OperatorProfile::Line>& lines, int steps,
                               double seconds);
void print(const std::vector<OperatorProfile::Line>& lines, int steps, double seconds);

}  // namespace mpi4dl
