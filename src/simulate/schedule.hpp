#pragma once

#include <string>
#include <vector>

namespace mpi4dl {

/// Action is one thing a rank does for one micro-batch: it runs its stage forward or backward.
struct Action {
  enum class Kind { forward, backward };
  Kind kind = Kind::forward;
  int batch = 0;      ///< micro-batch, counted over the whole optimizer step
  int direction = 0;  ///< 1: through the mirrored copy of the model (GEMS)

  bool operator==(const Action&) const = default;
};

/// Lists what one rank does in an optimizer step, in order. A schedule is data: one engine runs
/// any, and the simulator checks it first.
using Schedule = std::vector<Action>;

enum class ScheduleKind { gpipe, one_f_one_b, gems };

/// Returns "gpipe", "1f1b" or "gems".
std::string to_string(ScheduleKind kind);

struct PipelineShape {
  int stages = 1;
  int micro_batches = 1;
  int times = 1;  ///< GEMS: batches of so many micro-batches
};

/// Returns what a rank of `stage` (in direction 0) does.
Schedule make_schedule(ScheduleKind kind, const PipelineShape& shape, int stage);

/// Runs all forwards, then all backwards.
Schedule gpipe(const PipelineShape& shape, int stage);

/// Alternates one forward and one backward after a start that fills the pipeline: as fast as gpipe,
/// but stage s keeps at most stages - s micro-batches alive.
Schedule one_f_one_b(const PipelineShape& shape, int stage);

/// Returns GEMS-MASTER's: `times` batches of `micro_batches` each go through the model alternately
/// in direction 0 and 1; each batch's backward ends before the next one's forward begins, so the
/// activations of one batch are alive at a time. It is the same for every rank.
Schedule gems(int times, int micro_batches);

/// Returns the forwards of a schedule alone, in order.
Schedule forwards(const Schedule& schedule);

/// Returns "F0 F1 B0 B1"; actions of direction 1 carry a prime: "F2'".
std::string to_string(const Schedule& schedule);

}  // namespace mpi4dl
