#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>

#include "base/error.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/halo_benchmark.hpp"
#include "cli/image_size.hpp"
#include "cli/json_file.hpp"

namespace mpi4dl {
namespace {

struct HaloCommand {
  HaloOptions benchmark;
  std::string image_size = "8";
  std::string transport = "auto";
  std::string json_file;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What one rank reports; plain data, so that it can be gathered.
struct RankReport {
  int64_t height, width, bytes_sent, bytes_received, wrong;
  double min_ms, median_ms, max_ms;
};

RankReport report_of(const HaloBenchmark& benchmark, const std::vector<double>& seconds,
                     int64_t wrong) {
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return {benchmark.owned()[2].length(),
          benchmark.owned()[3].length(),
          benchmark.bytes_sent(),
          benchmark.bytes_received(),
          wrong,
          *least * 1e3,
          median(seconds) * 1e3,
          *most * 1e3};
}

/// An exchange has taken as long as it took the slowest rank: the median of that, in ms.
double slowest_median_ms(const Communicator& world, const std::vector<double>& seconds) {
  if (seconds.empty()) return 0;
  at::Tensor slowest =
      at::empty({static_cast<int64_t>(seconds.size())}, at::TensorOptions(at::kDouble));
  std::copy(seconds.begin(), seconds.end(), slowest.data_ptr<double>());
  world.all_reduce(slowest, Reduction::max);
  const double* first = slowest.data_ptr<double>();
  return median({first, first + seconds.size()}) * 1e3;
}

void print_ranks(const std::vector<RankReport>& ranks, bool validated) {
  std::printf("%5s  %-12s %12s %12s %10s %10s %10s %8s\n", "rank", "tile", "bytes out", "bytes in",
              "min ms", "median ms", "max ms", "#wrong");
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankReport& r = ranks[rank];
    std::printf("%5zu  %-12s %12lld %12lld %10.4f %10.4f %10.4f %8s\n", rank,
                fmt::format("{}x{}", r.height, r.width).c_str(),
                static_cast<long long>(r.bytes_sent), static_cast<long long>(r.bytes_received),
                r.min_ms, r.median_ms, r.max_ms, validated ? std::to_string(r.wrong).c_str() : "-");
  }
}

void print_times(const nlohmann::ordered_json& result) {
  std::printf("\nmedian over iterations, slowest rank:\n");
  for (const auto& [key, label] :
       {std::pair{"median_ms", "exchange"}, std::pair{"bare_mpi_ms", "bare MPI, same bytes"},
        std::pair{"adjoint_ms", "adjoint exchange (backward)"},
        std::pair{"reduction_ms", "sum of weight gradients"},
        std::pair{"sequential_ms", "exchange, then convolution"},
        std::pair{"overlapped_ms", "exchange during convolution"}})
    if (result.contains(key)) std::printf("  %-28s %10.4f ms\n", label, result[key].get<double>());
  std::printf("  %-28s %10.2f\n", "ratio to bare MPI", result["ratio_to_bare_mpi"].get<double>());
}

nlohmann::ordered_json summarise(const Communicator& world, const HaloOptions& options,
                                 const Timings& timings, const std::vector<RankReport>& ranks) {
  const double exchange = slowest_median_ms(world, timings.exchange);
  const double bare = slowest_median_ms(world, timings.bare);
  nlohmann::ordered_json result;
  int64_t wrong = 0, bytes = 0;
  for (const RankReport& rank : ranks) {
    wrong += rank.wrong;
    bytes = std::max(bytes, rank.bytes_sent);
  }
  if (options.validate) result["wrong"] = wrong;
  result["median_ms"] = exchange;
  result["bare_mpi_ms"] = bare;
  result["ratio_to_bare_mpi"] = bytes == 0 ? 1.0 : exchange / bare;
  if (options.backward) {
    result["adjoint_ms"] = slowest_median_ms(world, timings.adjoint);
    result["reduction_ms"] = slowest_median_ms(world, timings.reduction);
  }
  if (options.compute) {
    result["sequential_ms"] = slowest_median_ms(world, timings.sequential);
    result["overlapped_ms"] = slowest_median_ms(world, timings.overlapped);
  }
  result["bytes_per_rank"] = bytes;
  for (const RankReport& r : ranks)
    result["ranks"].push_back({{"tile", {r.height, r.width}},
                               {"bytes_out", r.bytes_sent},
                               {"bytes_in", r.bytes_received},
                               {"min_ms", r.min_ms},
                               {"median_ms", r.median_ms},
                               {"max_ms", r.max_ms}});
  return result;
}

int run_bench_halo(Session& session, const HaloCommand& command) {
  HaloOptions options = command.benchmark;
  const ImageSize size = parse_image_size(command.image_size);
  options.height = size.height;
  options.width = size.width;
  options.transport =
      command.transport == "messages" ? Transport::messages : Transport::shared_memory;
  if (options.half_gradients) options.backward = true;
  if (options.parts == 0) options.parts = session.world().size();

  session.doing("preparing the halo benchmark");
  HaloBenchmark benchmark(session, options);
  session.doing("timing the halo exchange");
  const Timings timings = benchmark.measure();
  session.doing("validating the halo exchange");
  const int64_t wrong = options.validate ? benchmark.count_wrong() : 0;

  session.doing("reporting the halo exchange");
  const auto ranks = all_gather(session.world(), report_of(benchmark, timings.exchange, wrong));
  const auto result = summarise(session.world(), options, timings, ranks);
  if (session.first()) {
    std::printf(
        "halo exchange: image %lldx%lld, %lld channels, batch %lld, halo %lld, tiles %s, %s, "
        "transport %s, %d thread%s a rank\n\n",
        static_cast<long long>(options.height), static_cast<long long>(options.width),
        static_cast<long long>(options.in_channels), static_cast<long long>(options.batch),
        static_cast<long long>(options.halo), to_string(benchmark.grid()).c_str(),
        options.dtype.c_str(), command.transport.c_str(), session.threads(), session.threads() == 1 ? "" : "s");
    print_ranks(ranks, options.validate);
    print_times(result);
    if (!command.json_file.empty()) write_json(command.json_file, result);
  }
  return options.validate && result["wrong"].get<int64_t>() > 0 ? 1 : 0;
}

}  // namespace

void add_bench_halo(CLI::App& bench, Command& chosen) {
  auto command = std::make_shared<HaloCommand>();
  HaloOptions& options = command->benchmark;
  CLI::App* halo = bench.add_subcommand(
      "halo", "Time and check the halo exchange of one layer, against bare MPI in the same run");
  halo->option_defaults()->always_capture_default();
  halo->add_option("--image-size", command->image_size,
                   "Whole image: 512, or height x width: 512x768");
  halo->add_option("--batch-size", options.batch, "Images")->check(at_least(1));
  halo->add_option("--halo-len", options.halo, "Rows and columns needed from each neighbour")
      ->check(at_least(0));
  halo->add_option("--in-channels", options.in_channels, "Channels of the image")
      ->check(at_least(1));
  halo->add_option("--out-channels", options.out_channels, "Channels of --compute's convolution")
      ->check(at_least(1));
  halo->add_option("--warmup", options.warmup, "Untimed exchanges")->check(at_least(0));
  halo->add_option("--iterations", options.iterations, "Timed exchanges")->check(at_least(1));
  halo->add_option("--num-spatial-parts", options.parts, "Tiles, one rank each")
      ->check(at_least(1))
      ->default_str("number of ranks");
  halo->add_option("--slice-method", options.slice_method,
                   "square, vertical (columns), horizontal (rows), or rows x columns: 2x3");
  halo->add_option("--dtype", options.dtype, "Type of the pixels")
      ->check(CLI::IsMember({"float32", "float64"}));
  halo->add_option("--transport", command->transport,
                   "auto (shared memory within a node, messages between nodes) or messages")
      ->check(CLI::IsMember({"auto", "messages"}));
  halo->add_flag("--compute", options.compute,
                 "Also time a convolution after the exchange, and overlapped with it");
  halo->add_flag("--backward", options.backward,
                 "Also time the adjoint, which adds halo gradients, and the sum of a convolution's "
                 "weight gradients over ranks");
  halo->add_flag("--fp16-allreduce", options.half_gradients,
                 "Weight gradients travel between nodes as float16, and are summed in float32; "
                 "implies --backward");
  halo->add_flag("--validate", options.validate,
                 "Check every pixel against its global position; exit 1 if any is wrong");
  halo->add_option("--json", command->json_file, "Write the result to this file");
  halo->callback([command, &chosen] {
    chosen.run = [command](Session& session) { return run_bench_halo(session, *command); };
  });
}

}  // namespace mpi4dl
