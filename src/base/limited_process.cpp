#include "base/limited_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Process is a process that this one has started; it does not outlive the object.
class Process {
 public:
  Process(std::vector<std::string> words, std::vector<std::string> environment, int output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int problem = posix_spawn(&id_, words[0].c_str(), &actions, nullptr,
                                    pointers_to(words).data(), pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    ensure(problem == 0, "{} could not be started: {}", words[0], std::strerror(problem));
  }
  ~Process() {
    if (ended_) return;
    end();
    while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void end() const { kill(id_, SIGKILL); }

  /// Returns whether it has ended.
  bool ended(ProcessResult& result) {
    int status = 0;
    if (!ended_ && waitpid(id_, &status, WNOHANG) == id_) {
      ended_ = true;
      if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
      if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    }
    return ended_;
  }

 private:
  pid_t id_ = -1;
  bool ended_ = false;
};

/// Pipe is a pipe whose ends no other process gets by accident.
struct Pipe {
  Pipe() { ensure(pipe2(ends.data(), O_CLOEXEC) == 0, "no pipe: {}", std::strerror(errno)); }
  ~Pipe() {
    close(ends[0]);
    close_input();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_input() {
    if (ends[1] >= 0) close(ends[1]);
    ends[1] = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

int milliseconds_to(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000));
}

/// Appends what has been written; returns false at its end.
bool read_some(int descriptor, std::string& output) {
  std::array<char, 1 << 16> buffer;
  const ssize_t count = read(descriptor, buffer.data(), buffer.size());
  if (count > 0) output.append(buffer.data(), static_cast<size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

void read_all(int descriptor, const ProcessLimits& limits, Clock::time_point deadline,
              ProcessResult& result) {
  bool more = true;
  while (more && !result.timed_out && !result.too_long) {
    pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
    const int left = milliseconds_to(deadline);
    if (poll(&ready, 1, left) > 0) more = read_some(descriptor, result.output);
    result.timed_out = more && left == 0;
    result.too_long = static_cast<int64_t>(result.output.size()) > limits.most_output;
  }
}

}  // namespace

ProcessResult run_limited(const std::vector<std::string>& words,
                          const std::vector<std::string>& environment,
                          const ProcessLimits& limits) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(limits.seconds));
  Pipe pipe;
  ProcessResult result;
  Process process(words, environment, pipe.ends[1]);
  pipe.close_input();
  read_all(pipe.ends[0], limits, deadline, result);
  // It may have closed its output and still run.
  while (!result.timed_out && !result.too_long && !process.ended(result)) {
    result.timed_out = milliseconds_to(deadline) == 0;
    poll(nullptr, 0, 1);
  }
  return result;
}

std::string signal_text(int signal) {
  const char* text = sigdescr_np(signal);
  return text == nullptr ? fmt::format("signal {}", signal) : text;
}

}  // namespace mpi4dl
