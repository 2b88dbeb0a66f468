// A process that has entered the sandbox cannot do what the sandbox denies, and can compute.
#include "base/sandbox.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/limited_process.hpp"

namespace mpi4dl {
namespace {

/// Returns the wait status of a process that acts within the sandbox; its exit code is 1 where the
/// act returns false.
int status_of(const std::function<bool()>& act, const SandboxLimits& limits = {}) {
  const pid_t process = fork();
  if (process == 0) {
    try {
      enter_sandbox(limits);
      _exit(act() ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  int status = -1;
  waitpid(process, &status, 0);
  return status;
}

bool denied(const std::function<long()>& call) {
  return status_of([&] { return call() == -1 && errno == EPERM; }) == 0;
}

TEST(Sandbox, DeniesFiles) {
  EXPECT_TRUE(denied([] { return open("/dev/null", O_RDONLY); }));
  EXPECT_TRUE(denied([] { return open("sandbox-test", O_CREAT | O_WRONLY, 0600); }));
  EXPECT_TRUE(denied([] { return unlink("sandbox-test"); }));
  EXPECT_TRUE(denied([] { return mkdir("sandbox-test", 0700); }));
}

TEST(Sandbox, DeniesNetworkAndProcesses) {
  EXPECT_TRUE(denied([] { return socket(AF_INET, SOCK_STREAM, 0); }));
  EXPECT_TRUE(denied([] { return socket(AF_UNIX, SOCK_STREAM, 0); }));
  EXPECT_TRUE(denied([] {
    std::string program = "/bin/true";
    char* words[] = {program.data(), nullptr};
    return execv(words[0], words);
  }));
  EXPECT_TRUE(denied([] { return fork(); }));
  EXPECT_TRUE(denied([] { return kill(getppid(), 0); }));
  EXPECT_TRUE(denied([] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }));
}

TEST(Sandbox, CannotBeLeft) {
  EXPECT_TRUE(denied([] { return setuid(0); }));
  EXPECT_TRUE(denied([] {
    const rlimit more{RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(RLIMIT_AS, &more);
  }));
}

TEST(Sandbox, LetsComputeAndWriteToWhatIsOpen) {
  EXPECT_EQ(status_of([] {
              std::vector<int> numbers(1 << 20, 1);
              return std::accumulate(numbers.begin(), numbers.end(), 0) == 1 << 20 &&
                     write(STDERR_FILENO, "", 0) == 0;
            }),
            0);
}

TEST(Sandbox, LimitsMemory) {
#if !defined(__SANITIZE_ADDRESS__)
  const auto allocate = [](size_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
  };
  const SandboxLimits limits{.memory_bytes = int64_t{64} << 20};
  EXPECT_EQ(status_of([&] { return allocate(size_t{32} << 20); }, limits), 0);
  EXPECT_EQ(WEXITSTATUS(status_of([&] { return allocate(size_t{96} << 20); }, limits)), 1);
#endif
}

TEST(Sandbox, LimitsTime) {
  const int status = status_of(
      [] {
        for (volatile bool more = true; more;) continue;
        return true;
      },
      {.cpu_seconds = 1});
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGXCPU);
}

/// A process whose parent is gone has another one.
TEST(Sandbox, EndsWithItsParent) {
  const auto code_with = [](pid_t parent) {
    const pid_t process = fork();
    if (process == 0) {
      end_with_parent(parent);
      _exit(0);
    }
    int status = -1;
    waitpid(process, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(code_with(getpid()), 0);
  EXPECT_EQ(code_with(getpid() + 1), 1);
}

TEST(Sandbox, EndsSoonAfterItsParent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t self = getpid();
    if (fork() == 0) {
      end_with_parent(self);
      [[maybe_unused]] const ssize_t sent = write(ends[1], "x", 1);
      pause();
      _exit(0);
    }
    pause();
  }
  close(ends[1]);
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);  // it waits
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_EQ(read(ends[0], &byte, 1), 0);  // the pipe's other end is gone with it
  close(ends[0]);
}

TEST(LimitedProcess, ReturnsOutputAndCode) {
  const ProcessResult result =
      run_limited({"/bin/sh", "-c", "echo $WORD; exit 3"}, {"WORD=text"}, {});
  EXPECT_EQ(result.output, "text\n");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.signal, 0);
}

TEST(LimitedProcess, EndsWhatTakesTooLong) {
  EXPECT_TRUE(run_limited({"/bin/sh", "-c", "sleep 60"}, {}, {.seconds = 0.2}).timed_out);
  EXPECT_TRUE(
      run_limited({"/bin/sh", "-c", "exec >&-; exec sleep 60"}, {}, {.seconds = 0.2}).timed_out);
}

TEST(LimitedProcess, EndsWhatWritesTooMuch) {
  EXPECT_TRUE(run_limited({"/bin/sh", "-c", "yes"}, {}, {.most_output = 1000}).too_long);
}

TEST(LimitedProcess, TellsWhichSignalEndedIt) {
  const ProcessResult result = run_limited({"/bin/sh", "-c", "kill -11 $$"}, {}, {});
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(signal_text(SIGSEGV), "Segmentation fault");
}

}  // namespace
}  // namespace mpi4dl
