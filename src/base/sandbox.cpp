#include "base/sandbox.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_PPC64LE;
#else
constexpr uint32_t kArchitecture = 0;  // no filter fits
#endif

const std::vector<int>& allowed_calls() {
  static const std::vector<int> calls{
      // memory
      SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk,
      // open files
      SYS_read, SYS_readv, SYS_pread64, SYS_write, SYS_writev, SYS_lseek, SYS_fstat, SYS_close,
      // time, waiting and chance
      SYS_clock_gettime, SYS_clock_nanosleep, SYS_gettimeofday, SYS_nanosleep, SYS_sched_yield,
      SYS_futex, SYS_getrandom, SYS_sched_getaffinity, SYS_getpid, SYS_gettid,
      // signals to itself, and the end
      SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_sigaltstack, SYS_exit,
      SYS_exit_group};
  return calls;
}

void limit(decltype(RLIMIT_CPU) resource, rlim_t most) {
  rlimit now{};
  getrlimit(resource, &now);
  now.rlim_cur = std::min(now.rlim_max, most);  // which nobody raises without a system call
  ensure(setrlimit(resource, &now) == 0, "a limit cannot be set: {}", std::strerror(errno));
}

/// Returns the address space that is in use. Those of sanitizers have no limit that says anything.
[[maybe_unused]] int64_t address_space() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

void set_limits(const SandboxLimits& limits) {
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.cpu_seconds));
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);  // a pipe is no file
#if !defined(__SANITIZE_ADDRESS__)
  limit(RLIMIT_AS, static_cast<rlim_t>(address_space() + limits.memory_bytes));
#endif
}

sock_filter statement(uint32_t code, uint32_t value) {
  return BPF_STMT(static_cast<uint16_t>(code), value);
}

/// Goes on `yes` or `no` instructions later, by whether the number that was loaded is `value`.
sock_filter if_equal(uint32_t value, size_t yes, size_t no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, static_cast<uint8_t>(yes),
                  static_cast<uint8_t>(no));
}

/// Makes the program that the kernel runs at each call. Numbers of x32 are on no list.
std::vector<sock_filter> filter() {
  const std::vector<int>& calls = allowed_calls();
  std::vector<sock_filter> program{
      statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      if_equal(kArchitecture, 1, 0), statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (size_t i = 0; i < calls.size(); ++i)
    program.push_back(if_equal(static_cast<uint32_t>(calls[i]), calls.size() - i, 0));
  program.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  program.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return program;
}

void set_filter() {
  std::vector<sock_filter> program = filter();
  const sock_fprog described{static_cast<unsigned short>(program.size()), program.data()};
  const bool done = kArchitecture != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &described) == 0;
  ensure(done, "this system cannot shut a process in (seccomp)");
}

}  // namespace

void end_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has ended before that
}

void enter_sandbox(const SandboxLimits& limits) {
  set_limits(limits);
  set_filter();
}

void close_inherited_files() {
  ensure(close_range(STDERR_FILENO + 1, ~0U, 0) == 0, "open files cannot be closed: {}",
         std::strerror(errno));
}

}  // namespace mpi4dl
