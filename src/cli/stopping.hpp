#pragma once

#include <string>

#include "comm/session.hpp"

namespace mpi4dl {

/// Makes Ctrl-C and its like end the process with one sentence of the first rank, in every command.
void end_on_signals();

/// Answers a training run that is asked to stop, and says what it does about it.
class Stopping {
 public:
  /// Answers signals. `folder`: of checkpoints; empty: there are none, and every signal ends the
  /// run at once. Otherwise it stops after a step; but Ctrl-C ends it at once until the steps
  /// begin.
  Stopping(const Session& session, std::string folder);

  void begin_steps() const;

  /// Returns whether a rank was asked to stop; the same on all ranks. Collective over the world.
  bool agreed() const;
  /// Returns the exit code of a run that was stopped. Collective over the world.
  int exit_code() const;

 private:
  const Session& session_;
  std::string folder_;
};

}  // namespace mpi4dl
