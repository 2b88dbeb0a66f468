#include "base/stop_signal.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <string_view>

#include "base/unfinished_file.hpp"

namespace mpi4dl {
namespace {

// What the handler reads; an answer that was given stays where it is, for it may be reading.
std::atomic<const SignalAnswer*> current = nullptr;
std::atomic<const std::atomic<uint32_t>*> failure = nullptr;
std::atomic<bool> asked = false, by_ctrl_c = false;

std::string_view name_of(int signal) {
  return signal == SIGINT ? "Ctrl-C" : signal == SIGTERM ? "SIGTERM" : "SIGUSR1";
}

/// Writes in one piece, and on a line of its own where a terminal may show a bar or "^C". A
/// launcher may show one of the two streams on a terminal and not the other.
void say(std::string_view first, std::string_view second, std::string_view third) {
  const bool terminal = isatty(STDERR_FILENO) != 0 || isatty(STDOUT_FILENO) != 0;
  const std::string_view before = terminal ? "\nmpi4dl: " : "mpi4dl: ";
  std::array<iovec, 5> pieces{};
  size_t next = 0;
  for (const std::string_view piece : {before, first, second, third, std::string_view("\n")})
    pieces[next++] = {const_cast<char*>(piece.data()), piece.size()};
  [[maybe_unused]] const ssize_t ignored =
      writev(STDERR_FILENO, pieces.data(), static_cast<int>(pieces.size()));
}

bool known_failure() {
  const auto* failed = failure.load();
  return failed != nullptr && *failed != 0;
}

/// Returns whether the process continues.
bool note(int signal, bool by_launcher, const SignalAnswer& answer) {
  if (answer.noted == Noted::nothing) return false;
  if (signal == SIGINT && answer.noted != Noted::all) return false;
  const bool first = !asked.exchange(true);
  if (signal == SIGINT && !first) return false;
  if (signal == SIGINT) by_ctrl_c = true;
  if (!first || !answer.speaks || (by_launcher && known_failure())) return true;
  if (by_launcher) {
    say(answer.words.launcher, {}, {});
  } else {
    say(answer.words.stop, signal == SIGINT ? answer.words.again : std::string_view(), {});
  }
  return true;
}

void handle(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const SignalAnswer& answer = *current.load();
  // SIGUSR1 it only passes on.
  const bool by_launcher =
      signal == SIGTERM && info->si_code == SI_USER && info->si_pid == answer.launcher;
  if (!note(signal, by_launcher, answer)) {
    if (answer.speaks && !(by_launcher && known_failure()))
      say("ended by ", by_launcher ? "mpirun" : name_of(signal), answer.words.end);
    remove_unfinished_files();
    _exit(128 + signal);
  }
  errno = error;
}

void install(int signal) {
  struct sigaction action{};
  if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void answer_signals(const SignalAnswer& answer) {
  static std::deque<SignalAnswer> given;
  current = &given.emplace_back(answer);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) install(signal);
}

void ignore_file_size_signal() {
  std::signal(SIGXFSZ, SIG_IGN);
}

void expect_failure_in(const std::atomic<uint32_t>* failed) {
  failure = failed;
}

bool stop_asked() {
  return asked;
}

bool interrupted() {
  return by_ctrl_c;
}

}  // namespace mpi4dl
