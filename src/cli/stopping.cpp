#include "cli/stopping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/launch.hpp"
#include "base/launcher.hpp"
#include "base/stop_signal.hpp"
#include "comm/collectives.hpp"

namespace mpi4dl {
namespace {

/// Looks for the launcher once, at the start: MPI changes the environment.
const std::optional<Launcher>& launcher() {
  static const std::optional<Launcher> found = find_launcher();
  return found;
}

void answer(SignalAnswer answer) {
  if (launcher()) answer.launcher = launcher()->process;
  answer_signals(answer);
}

std::string launcher_words(const std::string& folder) {
  if (!launcher()) return {};
  return fmt::format(
      "mpirun ends this job and kills its ranks about {} s from now; if the step is saved to {} "
      "before that, the run says so; if not, the last checkpoint there is whole. kill -USR1 to "
      "mpirun stops a run without such a limit",
      launcher()->pause_seconds, folder);
}

bool any(const Communicator& world, bool mine) {
  return std::ranges::any_of(all_gather(static_cast<int>(mine), world),
                             [](int theirs) { return theirs != 0; });
}

}  // namespace

void end_on_signals() {
  ignore_file_size_signal();
  answer({.speaks = read_launch().rank == 0});
  if (launcher()) end_with(*launcher());
}

Stopping::Stopping(const Session& session, std::string folder)
    : session_(session), folder_(std::move(folder)) {
  SignalAnswer early{.speaks = session.first()};
  early.words.end = "; nothing was saved: there is no --checkpoint-dir";
  if (!folder_.empty()) {
    early.noted = Noted::queue_signals;
    early.words = {
        .end = fmt::format(" before the first step; {} is as it was", folder_),
        .stop = fmt::format("stopping after the next step, which is saved to {}", folder_),
        .launcher = launcher_words(folder_)};
  }
  answer(early);
}

void Stopping::begin_steps() const {
  if (folder_.empty()) return;
  answer({.noted = Noted::all,
          .speaks = session_.first(),
          .words = {.end = fmt::format("; the last checkpoint in {} is whole", folder_),
                    .stop = fmt::format("stopping after this step, which is saved to {}", folder_),
                    .again = "; press Ctrl-C again to end at once",
                    .launcher = launcher_words(folder_)}});
}

bool Stopping::agreed() const {
  return any(session_.world(), stop_asked());
}

/// Returns 0 to a queue, which counts a run that was stopped and saved as a success; a person who
/// has pressed Ctrl-C does not want the next command of a script to begin.
int Stopping::exit_code() const {
  constexpr int kInterrupted = 130;
  return any(session_.world(), interrupted()) ? kInterrupted : 0;
}

}  // namespace mpi4dl
