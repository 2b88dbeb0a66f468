#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/command_line.hpp"
#include "cli/stopping.hpp"
#include "comm/caching_allocator.hpp"
#include "comm/session.hpp"

namespace mpi4dl {
namespace {

int run(const CommandLine& line) {
  Session session({.timeout_seconds = line.timeout_seconds()});
  try {
    line.chosen().check(session.world().size());
    if (line.caching_allocator()) {
      use_allocator(CpuAllocator::caching);
      CachingAllocator& memory = CachingAllocator::instance();
      memory.set_limit(memory.limit() / session.node_ranks());
    }
    return line.chosen().run(session);
  } catch (const std::exception& error) {
    session.fail(error);
  }
}

/// What was printed may have got lost, because the disk is full for example.
int check_output(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "mpi4dl: the output could not be written: %s\n",
               errno == 0 ? "part of it is missing" : std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace
}  // namespace mpi4dl

/// Nothing heavy starts before the command line is known to be sound.
int main(int argc, char** argv) {
  using namespace mpi4dl;
  end_on_signals();
  const Launch launch = read_launch();
  CommandLine line;
  try {
    if (const auto code = line.parse(argc, argv, launch)) return check_output(*code);
    if (launch.ranks) line.chosen().check(*launch.ranks);
  } catch (const ConfigFileError& error) {
    end_with_usage_error(launch, error.what(), SeenBy::some_ranks);
  } catch (const UsageError& error) {
    end_with_usage_error(launch, error.what(), SeenBy::every_rank);
  }
  try {
    return check_output(run(line));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi4dl: %s\n", error.what());
    return 1;
  }
}
