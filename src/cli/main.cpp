#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "backend/device.hpp"
#include "backend/device_errors.hpp"
#include "backend/libtorch_warnings.hpp"
#include "base/instruction_set.hpp"
#include "cli/command_line.hpp"
#include "cli/device_place.hpp"
#include "cli/flag_names.hpp"
#include "cli/stopping.hpp"
#include "comm/session.hpp"
#include "memory/caching_allocator.hpp"

namespace mpi4dl {
namespace {

int run(const CommandLine& line, const SessionOptions& options, const Launch& launch) {
  warn_once(launch.rank == 0);
  set_arithmetic(line.arithmetic());
  Session session(options);
  try {
    if (line.takes_device_by_place()) check_place(session);
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
    return check_output(run(line, options, launch));
  } catch (const UsageError& error) {  // before there was a session that could tell
    end_with_usage_error(launch, with_flags(error.what()), SeenBy::every_rank);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "mpi4dl: %s\n", sentence_of(error).c_str());
    return 1;
  }
}
