#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "bench/halo_report.hpp"
#include "cli/add_command.hpp"
#include "cli/checks.hpp"
#include "data/image_size.hpp"
#include "report/json_file.hpp"

namespace mpi4dl {
namespace {

struct BenchHaloFlags {
  HaloOptions benchmark;
  std::string image_size = "8";
  std::string transport = "auto";
  std::string json_file;

  HaloOptions options(int ranks) const;
  /// Says how the halos travel.
  std::string route(const CommContext& context) const;
};

HaloOptions BenchHaloFlags::options(int ranks) const {
  HaloOptions options = benchmark;
  const ImageSize size = parse_image_size("--image-size", image_size);
  options.height = size.height;
  options.width = size.width;
  options.transport = transport == "messages" ? Transport::messages : Transport::shared_memory;
  options.backward = options.backward || options.half_gradients;
  if (options.parts == 0) options.parts = ranks;
  return options;
}

std::string BenchHaloFlags::route(const CommContext& context) const {
  if (context.backend->on_host()) return "transport " + transport;
  return fmt::format("from device to device through {}",
                     context.device_aware ? "MPI" : "host memory");
}

/// Throws UsageError where a flag asks for what the others leave out.
void check_bench_halo(const BenchHaloFlags& flags, int /*ranks*/) {
  const HaloOptions& options = flags.benchmark;
  validate(options.out_channels == HaloOptions().out_channels || options.compute ||
               options.backward || options.half_gradients,
           "--out-channels {} is about a convolution, which --compute and --backward have, as "
           "benchmark_sp_halo_exchange_with_compute",
           options.out_channels);
}

int run_bench_halo(Session& session, const BenchHaloFlags& flags) {
  const Communicator& world = session.world();
  validate(world.context().backend->on_host() || flags.transport == "auto",
           "--transport is about halos in host memory; how those of a device travel is said by "
           "--device-transport");
  const HaloOptions options = flags.options(world.size());
  session.doing("preparing the halo benchmark");
  HaloBenchmark benchmark(session, options);
  session.doing("timing the halo exchange");
  const Timings timings = benchmark.measure();
  session.doing("validating the halo exchange");
  const int64_t wrong = options.validate ? benchmark.count_wrong() : 0;

  session.doing("reporting the halo exchange");
  const auto ranks = gather_figures(world, benchmark, timings, wrong);
  const nlohmann::ordered_json result = to_json(world, benchmark, options, timings, ranks);
  if (session.first()) {
    fmt::print(
        "halo exchange: image {}x{}, {} channels, batch {}, halo {}, tiles {}, {}, {}, "
        "{} thread{} a rank\n\n",
        options.height, options.width, options.in_channels, options.batch, options.halo,
        to_string(benchmark.grid()), options.dtype, flags.route(world.context()), session.threads(),
        session.threads() == 1 ? "" : "s");
    print(ranks, result, options.validate);
    if (!flags.json_file.empty()) write_json(flags.json_file, result);
  }
  return options.validate && result["wrong"].get<int64_t>() > 0 ? 1 : 0;
}

}  // namespace

void add_bench_halo(CLI::App& bench, Command& chosen) {
  auto [halo, flags] = add_command<BenchHaloFlags>(
      bench, chosen, "halo",
      "Time and check the halo exchange of one layer, against bare MPI in the same run",
      run_bench_halo, check_bench_halo);
  HaloOptions& options = flags.benchmark;
  halo.add_option("--image-size", flags.image_size, "Whole image: 512, or height x width: 512x768");
  halo.add_option("--batch-size", options.batch, "Images of a batch")->check(at_least(1));
  halo.add_option("--halo-len", options.halo, "Rows and columns needed from each neighbour")
      ->check(at_least(0));
  halo.add_option("--in-channels", options.in_channels, "Channels of the image")
      ->check(at_least(1));
  halo.add_option("--out-channels", options.out_channels, "Channels of --compute's convolution")
      ->check(at_least(1));
  halo.add_option("--warmup", options.warmup, "Untimed exchanges")->check(at_least(0));
  halo.add_option("--iterations", options.iterations, "Timed exchanges")->check(at_least(1));
  halo.add_option("--num-spatial-parts", options.parts, "Tiles, one rank each")
      ->check(at_least(1))
      ->default_str("number of ranks");
  halo.add_option(
      "--slice-method", options.slice_method,
      "How to cut: square, vertical (columns), horizontal (rows), or rows x columns: 2x3");
  halo.add_option("--dtype", options.dtype, "Data type of the pixels")
      ->check(CLI::IsMember({"float32", "float64"}));
  halo.add_option("--transport", flags.transport,
                  "auto (shared memory within a node, messages between nodes) or messages")
      ->check(CLI::IsMember({"auto", "messages"}));
  halo.add_flag("--compute", options.compute,
                "Also time a convolution after the exchange, and overlapped with it");
  halo.add_flag(
      "--backward", options.backward,
      "Also time the backward exchange, which adds halo gradients, and the all-reduce of a "
      "convolution's weight gradients");
  halo.add_flag("--fp16-allreduce", options.half_gradients,
                "All-reduce weight gradients between nodes in float16, accumulated in float32; "
                "implies --backward");
  halo.add_flag("--validate", options.validate,
                "Check every pixel against its global position; exit 1 if any is wrong");
  halo.add_option("--json", flags.json_file, "Write the result to this file");
}

}  // namespace mpi4dl
