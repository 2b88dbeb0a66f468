#include "bench/baseline_process.hpp"

#include <mpi.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/affinity.hpp"
#include "base/error.hpp"
#include "comm/check.hpp"
#include "comm/collectives.hpp"

namespace mpi4dl {
namespace {

/// Returns the baseline of this program, which has its name with -baseline behind it.
std::string path_of_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string() + "-baseline";
}

cpu_set_t mask_of(const std::vector<int>& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : cores) CPU_SET(core, &mask);
  return mask;
}

/// Binds this thread to some cores while it lives. Libraries count the cores when they are loaded,
/// so a new process must be born with its own.
class OnCores {
 public:
  explicit OnCores(const std::vector<int>& cores) {
    const cpu_set_t mask = mask_of(cores);
    sched_setaffinity(0, sizeof(mask), &mask);
  }
  ~OnCores() { sched_setaffinity(0, sizeof(before_), &before_); }
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;

 private:
  cpu_set_t before_ = allowed_cores();
};

/// Leaves out OMP_NUM_THREADS, which is a rank's share of the cores: this process has them all.
std::vector<char*> environment() {
  std::vector<char*> kept;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("OMP_NUM_THREADS=")) kept.push_back(*variable);
  kept.push_back(nullptr);
  return kept;
}

pid_t start(std::vector<std::string> words, int standard_input_and_output) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, standard_input_and_output, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, standard_input_and_output, STDOUT_FILENO);
  pid_t process = -1;
  const int problem = posix_spawn(&process, words[0].c_str(), &actions, nullptr, arguments.data(),
                                  environment().data());
  posix_spawn_file_actions_destroy(&actions);
  ensure(problem == 0, "{} could not be started: {}", words[0], std::strerror(problem));
  return process;
}

}  // namespace

std::vector<int> cores_of_node(const Communicator& world) {
  MPI_Comm shared = MPI_COMM_NULL;
  mpi(MPI_Comm_split_type(world.handle(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
  const Communicator node(shared, world.shared_context());
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const cpu_set_t& cores : all_gather(allowed_cores(), node)) CPU_OR(&all, &all, &cores);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &all)) cores.push_back(core);
  return cores;
}

BaselineProcess::BaselineProcess(const Options& options)
    : timeout_seconds_(options.timeout_seconds) {
  std::array<int, 2> ends{};
  ensure(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0,
         "no socket for mpi4dl-baseline: {}", std::strerror(errno));
  socket_ = ends[0];
  const timeval patience{.tv_sec = static_cast<time_t>(timeout_seconds_) + 1, .tv_usec = 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::vector<std::string> words{path_of_program(), "--threads",
                                 std::to_string(options.cores.size())};
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  const OnCores there(options.cores);
  process_ = start(std::move(words), ends[1]);
  close(ends[1]);
}

/// The process ends when its standard input does.
BaselineProcess::~BaselineProcess() {
  close(socket_);
  waitpid(process_, nullptr, 0);
}

double BaselineProcess::ask(const std::string& command) {
  const std::string line = command + "\n";
  send(socket_, line.data(), line.size(), MSG_NOSIGNAL);
  std::string answer;
  char byte = 0;
  ssize_t count = 0;
  while ((count = recv(socket_, &byte, 1, 0)) == 1 && byte != '\n') answer += byte;
  ensure(count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK),
         "the baseline has not answered '{}' for {:.0f} s; raise the time-out if that is normal",
         command, timeout_seconds_);
  ensure(count == 1, "the baseline has ended instead of answering '{}'; is there enough memory?",
         command);
  return std::stod(answer);
}

}  // namespace mpi4dl
