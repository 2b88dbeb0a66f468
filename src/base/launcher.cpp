#include "base/launcher.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/unfinished_file.hpp"

namespace mpi4dl {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Removes the files through which ranks of a node exchange messages; the others of this job are
/// mapped too.
void remove_message_files() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/vader_segment.") != std::string::npos)
      unlink(line.substr(line.find('/')).c_str());
}

/// Removes the launcher's folder, if it is certain that it is this one's.
void remove_folder(const Launcher& launcher) {
  const std::filesystem::path folder = environment("PMIX_SERVER_TMPDIR");
  std::error_code ignored;
  if (folder.filename() == fmt::format("pid.{}", launcher.process))
    std::filesystem::remove_all(folder, ignored);
}

}  // namespace

std::optional<Launcher> find_launcher() {
  if (environment("OMPI_COMM_WORLD_RANK").empty()) return {};
  Launcher launcher{.process = getppid()};
  const int pause = std::atoi(environment("OMPI_MCA_odls_base_sigkill_timeout").c_str());
  if (pause > 0) launcher.pause_seconds = pause;
  return launcher;
}

void end_with(const Launcher& launcher) {
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, launcher.process, 0));
  if (descriptor < 0) return;  // before Linux 5.3; Open MPI notices a second later
  std::thread([launcher, descriptor] {
    pollfd gone{.fd = descriptor, .events = POLLIN, .revents = 0};
    while (poll(&gone, 1, -1) < 0 && errno == EINTR) {
    }
    remove_unfinished_files();
    remove_message_files();
    remove_folder(launcher);
    _exit(1);
  }).detach();
}

}  // namespace mpi4dl
