#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "backend/device.hpp"
#include "base/instruction_set.hpp"
#include "cli/command_line.hpp"
#include "cli/flag_names.hpp"
#include "cli/stopping.hpp"
#include "comm/session.hpp"
#include "memory/caching_allocator.hpp"

namespace mpi4dl {
namespace {

/// More ranks than devices are often a mistake: another number of ranks was meant, or the launcher
/// does not tell ranks their place on the node.
void tell_of_shared_devices(const Session& session) {
  const int ranks = session.node_ranks(), devices = session.node_devices();
  if (session.first() && devices > 0 && devices < ranks)
    fmt::print(stderr, "{} ranks of this node share {} device{}\n", ranks, devices,
               devices == 1 ? "" : "s");
}

int run(const CommandLine& line, const SessionOptions& options) {
  set_arithmetic(line.arithmetic());
  Session session(options);
  try {
    tell_of_shared_devices(session);
    instruction_set();  // throws where MPI4DL_MAX_ISA is wrong
    line.chosen().check(session.world().size());
    if (line.caching_allocator()) {
      use_allocator(CpuAllocator::caching);
      CachingAllocator& memory = CachingAllocator::instance();
      memory.set_limit(memory.limit() / session.node_ranks());
    }
    return line.chosen().run(session);
  } catch (const std::exception& error) {
    fail_with_flags(session, error);
  }
}

/// Fails where something that was printed got lost, because the disk is full for example.
int check_output(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "mpi4dl: the output could not be written: %s\n",
               errno == 0 ? "part of it is missing" : std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace
}  // namespace mpi4dl

/// Starts nothing heavy before the command line is known to be sound.
int main(int argc, char** argv) {
  using namespace mpi4dl;
  end_on_signals();
  const Launch launch = read_launch();
  CommandLine line;
  SessionOptions options;
  try {
    if (const auto code = line.parse(argc, argv, launch)) return check_output(*code);
    if (launch.ranks) line.chosen().check(*launch.ranks);
    options = line.session_options(launch);
  } catch (const ConfigFileError& error) {
    end_with_usage_error(launch, error.what(), SeenBy::some_ranks);
  } catch (const UsageError& error) {
    end_with_usage_error(launch, with_flags(error.what()), SeenBy::every_rank);
  }
  try {
    return check_output(run(line, options));
  } catch (const UsageError& error) {  // before there was a session that could tell
    end_with_usage_error(launch, with_flags(error.what()), SeenBy::every_rank);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "mpi4dl: %s\n", error.what());
    return 1;
  }
}
