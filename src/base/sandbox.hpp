#pragma once

#include <sys/types.h>

#include <cstdint>

namespace mpi4dl {

struct SandboxLimits {
  int64_t cpu_seconds = 60;
  int64_t memory_bytes = int64_t{2} << 30;  ///< of address space, beyond what is used now
};

/// Leaves to this process, for the rest of its life, what it needs to compute: memory, time, and
/// reading and writing files that are open already. All other system calls fail: it can open,
/// change and remove no file, start no thread and no program, reach no network and no other
/// process, and leaves no core file. Throws Error where the system does not do this.
///
/// A list of calls that are allowed needs no second wall: there is no file that Landlock could
/// protect and no network that a namespace could hide from who can open neither.
void enter_sandbox(const SandboxLimits& limits);

/// Ends this process as soon as the one that started it has ended, whose number is `parent`.
void end_with_parent(pid_t parent);

/// Closes all open files but the first three; before enter_sandbox, in a program that was started
/// by another.
void close_inherited_files();

}  // namespace mpi4dl
