#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "base/error.hpp"
#include "base/version.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "comm/caching_allocator.hpp"
#include "comm/session.hpp"

namespace mpi4dl {
namespace {

int run(Session& session, int argc, char** argv) {
  CLI::App app{
      "Trains convolutional networks on images too large for one device, across MPI ranks."};
  app.name("mpi4dl");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", std::string("mpi4dl ") + kVersion);
  double timeout = session.world().context().timeout_seconds;
  app.add_option("--timeout", timeout, "Seconds that a rank waits for another before the job ends")
      ->check(more_than(0))
      ->capture_default_str();
  std::string allocator = "caching";
  app.add_option("--allocator", allocator,
                 "Memory of tensors: caching keeps freed blocks, in huge pages; system does not")
      ->check(CLI::IsMember({"caching", "system"}))
      ->capture_default_str();
  app.set_config("--config", "", "Read flags from this file: [train] batch-size=4");

  Command chosen;
  add_train(app, chosen);
  add_evaluate(app, chosen);
  add_predict(app, chosen);
  add_plan(app, chosen);
  add_export(app, chosen);
  add_verify(app, chosen);
  CLI::App* data = app.add_subcommand("data", "Make data sets and look at them");
  data->require_subcommand(1);
  add_make_megapixel_mnist(*data, chosen);
  add_data_inspect(*data, chosen);
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine and this system");
  bench->require_subcommand(1);
  add_bench_halo(*bench, chosen);
  add_bench_train(*bench, chosen);

  session.doing("reading the command line");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return session.first() ? app.exit(help) : 0;
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + "; see mpi4dl --help");
  }
  session.world().context().timeout_seconds = timeout;
  if (allocator == "caching") {
    use_allocator(CpuAllocator::caching);
    CachingAllocator& memory = CachingAllocator::instance();
    memory.set_limit(memory.limit() / session.node_ranks());
  }
  return chosen(session);
}

}  // namespace
}  // namespace mpi4dl

int main(int argc, char** argv) {
  try {
    mpi4dl::Session session;
    try {
      return mpi4dl::run(session, argc, argv);
    } catch (const std::exception& error) {
      session.fail(error);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi4dl: %s\n", error.what());
    return 1;
  }
}
