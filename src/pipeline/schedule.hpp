#pragma once

#include <string>
#include <vector>

namespace mpi4dl {

/// One thing a rank does for one micro-batch: run its stage forward or backward.
struct Action {
  enum class Kind { forward, backward };
  Kind kind = Kind::forward;
  int batch = 0;      ///< micro-batch, counted over the whole optimizer step
  int direction = 0;  ///< 1: through the mirrored copy of the model (GEMS)

  bool operator==(const Action&) const = default;
};

/// What one rank does in an optimizer step, in order. A schedule is data: one engine runs any, and
/// the simulator plays it on paper first.
using Schedule = std::vector<Action>;

enum class ScheduleKind { gpipe, one_f_one_b, gems };

struct PipelineShape {
  int stages = 1;
  int micro_batches = 1;
  int times = 1;  ///< GEMS: batches of so many micro-batches
};

/// What a rank of `stage` (in direction 0) does.
Schedule make_schedule(ScheduleKind kind, const PipelineShape& shape, int stage);

/// All forwards, then all backwards.
Schedule gpipe(const PipelineShape& shape, int stage);

/// One forward, one backward in turn after a start that fills the pipeline: as fast as gpipe, but
/// stage s keeps at most stages - s micro-batches alive.
Schedule one_f_one_b(const PipelineShape& shape, int stage);

/// GEMS-MASTER: `times` batches of `micro_batches` each go through the model alternately in
/// direction 0 and 1; each batch's backward ends before the next one's forward begins, so the
/// activations of one batch are alive at a time. The same for every rank.
Schedule gems(int times, int micro_batches);

/// The forwards of a schedule alone, in order.
Schedule forwards(const Schedule& schedule);

/// "F0 F1 B0 B1"; actions of direction 1 carry a prime: "F2'".
std::string to_string(const Schedule& schedule);

}  // namespace mpi4dl
