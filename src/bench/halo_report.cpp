#include "bench/halo_report.hpp"
#include "comm/collectives.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/median.hpp"

namespace mpi4dl {
namespace {

/// Returns the median of an exchange's time in ms; each took as long as on its slowest rank.
double slowest_median_ms(const Communicator& world, const std::vector<double>& seconds) {
  if (seconds.empty()) return 0;
  at::Tensor slowest =
      at::empty({static_cast<int64_t>(seconds.size())}, at::TensorOptions(at::kDouble));
  std::copy(seconds.begin(), seconds.end(), slowest.data_ptr<double>());
  all_reduce(slowest, world, {.reduction = Reduction::max});
  const double* first = slowest.data_ptr<double>();
  return median({first, first + seconds.size()}) * 1e3;
}

void print_ranks(const std::vector<HaloRankFigures>& ranks, bool validated) {
  fmt::print("{:>5}  {:<12} {:>12} {:>12} {:>10} {:>10} {:>10} {:>8}\n", "rank", "tile",
             "bytes out", "bytes in", "min ms", "median ms", "max ms", "#wrong");
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const HaloRankFigures& r = ranks[rank];
    fmt::print("{:>5}  {:<12} {:>12} {:>12} {:>10.4f} {:>10.4f} {:>10.4f} {:>8}\n", rank,
               fmt::format("{}x{}", r.height, r.width), r.bytes_sent, r.bytes_received, r.min_ms,
               r.median_ms, r.max_ms, validated ? std::to_string(r.wrong) : "-");
  }
}

void print_times(const nlohmann::ordered_json& result) {
  fmt::print("\nmedian over iterations, slowest rank:\n");
  for (const auto& [key, label] :
       {std::pair{"median_ms", "exchange"}, std::pair{"bare_mpi_ms", "bare MPI, same bytes"},
        std::pair{"adjoint_ms", "adjoint exchange (backward)"},
        std::pair{"reduction_ms", "sum of weight gradients"},
        std::pair{"sequential_ms", "exchange, then convolution"},
        std::pair{"overlapped_ms", "exchange during convolution"}})
    if (result.contains(key))
      fmt::print("  {:<28} {:>10.4f} ms\n", label, result[key].get<double>());
  fmt::print("  {:<28} {:>10.2f}\n", "ratio to bare MPI",
             result["ratio_to_bare_mpi"].get<double>());
  if (result.contains("reduction"))
    fmt::print("\nweight gradients: {}\n", result["reduction"].get<std::string>());
}

}  // namespace

std::vector<HaloRankFigures> gather_figures(const Communicator& world,
                                            const HaloBenchmark& benchmark, const Timings& timings,
                                            int64_t wrong) {
  const std::vector<double>& seconds = timings.exchange;
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return all_gather(HaloRankFigures{benchmark.owned()[2].length(), benchmark.owned()[3].length(),
                                    benchmark.bytes_sent(), benchmark.bytes_received(), wrong,
                                    *least * 1e3, median(seconds) * 1e3, *most * 1e3},
                    world);
}

nlohmann::ordered_json to_json(const Communicator& world, const HaloBenchmark& benchmark,
                               const HaloOptions& options, const Timings& timings,
                               const std::vector<HaloRankFigures>& ranks) {
  const double exchange = slowest_median_ms(world, timings.exchange);
  const double bare = slowest_median_ms(world, timings.bare);
  nlohmann::ordered_json result;
  int64_t wrong = 0, bytes = 0;
  for (const HaloRankFigures& rank : ranks) {
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
    result["reduction"] = benchmark.describe_reduction();
  }
  if (options.compute) {
    result["sequential_ms"] = slowest_median_ms(world, timings.sequential);
    result["overlapped_ms"] = slowest_median_ms(world, timings.overlapped);
  }
  result["bytes_per_rank"] = bytes;
  for (const HaloRankFigures& r : ranks)
    result["ranks"].push_back({{"tile", {r.height, r.width}},
                               {"bytes_out", r.bytes_sent},
                               {"bytes_in", r.bytes_received},
                               {"min_ms", r.min_ms},
                               {"median_ms", r.median_ms},
                               {"max_ms", r.max_ms}});
  return result;
}

void print(const std::vector<HaloRankFigures>& ranks, const nlohmann::ordered_json& result,
           bool validated) {
  print_ranks(ranks, validated);
  print_times(result);
}

}  // namespace mpi4dl
