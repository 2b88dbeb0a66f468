#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace mpi4dl {

// What a process does about Ctrl-C (SIGINT), and about what a queue or a launcher sends to a job
// that has to go (SIGTERM, SIGUSR1):
//
//     noted:       nothing                all but Ctrl-C        all
//     Ctrl-C       ends, code 130         ends, code 130        noted; the second ends, code 130
//     SIGTERM      ends, code 143         noted                 noted
//     SIGUSR1      ends, code 138         noted                 noted

enum class Noted { nothing, queue_signals, all };

/// Holds what is said, after "mpi4dl: ".
struct SignalWords {
  std::string end = {};       ///< goes after "ended by Ctrl-C", or by whatever it was
  std::string stop = {};      ///< at the first signal that is noted
  std::string again = {};     ///< goes after that if it was Ctrl-C
  std::string launcher = {};  ///< instead of both if mpirun ends this job
};

struct SignalAnswer {
  Noted noted = Noted::nothing;
  bool speaks = true;  ///< one rank of all does
  SignalWords words = {};
  pid_t launcher = 0;  ///< 0: none is known
};

/// Sets the answer from now on. A signal that this process was started to ignore stays ignored.
void answer_signals(const SignalAnswer& answer);

/// Makes a file that cannot grow an error like a full disk, and no signal.
void ignore_file_size_signal();

/// Answers the launcher's signals in silence from now on where `failed` is not zero: a rank has
/// failed and said why. Null: nobody knows.
void expect_failure_in(const std::atomic<uint32_t>* failed);

/// Returns whether a signal was noted.
bool stop_asked();
/// Returns whether it was Ctrl-C.
bool interrupted();

}  // namespace mpi4dl
