#pragma once

namespace mpi4dl {

/// While it lives, SIGTERM and SIGUSR1 do not end the process but are noted: a queue sends them
/// when a job has to go, and a run then has some time to finish its step.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Whether one of them has come.
  bool came() const;

 private:
  void (*previous_[2])(int);
};

}  // namespace mpi4dl
