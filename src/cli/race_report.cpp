#include "cli/race_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/units.hpp"

namespace mpi4dl {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double images_per_second(const RaceFigures& figures, const std::vector<double>& seconds) {
  return static_cast<double>(figures.images) / median(seconds);
}

double gflops(const RaceFigures& figures) {
  return figures.flops * 1e-9 / median(figures.ours);
}

/// "plain libtorch" -> "plain"; "one rank" -> "one_rank".
std::string key_of(const std::string& opponent) {
  if (opponent == "plain libtorch") return "plain";
  std::string key = opponent;
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

void print_side(const std::string& name, const RaceFigures& figures,
                const std::vector<double>& seconds) {
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  std::printf("%-16s %12.4f %14.4f %12.4f %12.4f\n", name.c_str(),
              images_per_second(figures, seconds), median(seconds), *least, *most);
}

void print_ranks(const RaceFigures& figures) {
  std::printf("\n%5s %8s %9s %14s %9s %12s %12s %14s\n", "rank", "threads", "compute",
              "communication", "waiting", "CPU s/step", "tensors MiB", "resident MiB");
  const auto steps = static_cast<double>(figures.ours.size());
  for (size_t rank = 0; rank < figures.ranks.size(); ++rank) {
    const auto& [costs, resident, threads] = figures.ranks[rank];
    const auto share = [&](double seconds) { return 100 * seconds / costs.seconds; };
    std::printf("%5zu %8d %8.1f%% %13.1f%% %8.1f%% %12.3f %12.1f %14.1f\n", rank, threads,
                share(costs.seconds - costs.communication - costs.waiting),
                share(costs.communication), share(costs.waiting), costs.cpu / steps,
                mebibytes(costs.peak_bytes), mebibytes(resident));
  }
}

/// What the operators do not account for: our own kernels and bookkeeping.
double elsewhere(const std::vector<OperatorProfile::Line>& lines, double seconds) {
  for (const auto& line : lines) seconds -= line.seconds;
  return seconds;
}

double moving(const std::vector<OperatorProfile::Line>& lines) {
  double seconds = 0;
  for (const auto& line : lines)
    if (line.moves_data) seconds += line.seconds;
  return seconds;
}

}  // namespace

nlohmann::ordered_json to_json(const RaceFigures& figures) {
  nlohmann::ordered_json result{{"images_per_s", images_per_second(figures, figures.ours)}};
  if (!figures.opponent.empty()) {
    const double theirs = images_per_second(figures, figures.theirs);
    result[key_of(figures.opponent) + "_images_per_s"] = theirs;
    result["ratio"] = images_per_second(figures, figures.ours) / theirs;
  }
  result["gflops"] = gflops(figures);
  result["gemm_peak_gflops"] = figures.gemm_gflops;
  result["gemm_type"] = figures.gemm_type;
  result["gemm_fraction"] = gflops(figures) / figures.gemm_gflops;
  result["peak_bytes"] = nlohmann::ordered_json::array();
  const auto steps = static_cast<double>(figures.ours.size());
  for (const auto& [costs, resident, threads] : figures.ranks) {
    result["peak_bytes"].push_back(costs.peak_bytes);
    result["ranks"].push_back(
        {{"threads", threads},
         {"compute_s", (costs.seconds - costs.communication - costs.waiting) / steps},
         {"communication_s", costs.communication / steps},
         {"waiting_s", costs.waiting / steps},
         {"cpu_s", costs.cpu / steps},
         {"resident_bytes", resident}});
  }
  if (figures.opponent_memory > 0)
    result[key_of(figures.opponent) + "_resident_bytes"] = figures.opponent_memory;
  result["seconds"] = figures.ours;
  if (!figures.opponent.empty()) result[key_of(figures.opponent) + "_seconds"] = figures.theirs;
  return result;
}

void print(const RaceFigures& figures) {
  std::printf("%-16s %12s %14s %12s %12s\n", "", "images/s", "median s/step", "least", "most");
  print_side("this layout", figures, figures.ours);
  if (!figures.opponent.empty()) {
    print_side(figures.opponent, figures, figures.theirs);
    std::printf(
        "%-16s %12.3f\n", "ratio",
        images_per_second(figures, figures.ours) / images_per_second(figures, figures.theirs));
  }
  std::printf("%-16s %12.1f   %.1f %% of %.1f, a %s matrix product on the same cores\n", "GFLOP/s",
              gflops(figures), 100 * gflops(figures) / figures.gemm_gflops, figures.gemm_gflops,
              figures.gemm_type.c_str());
  print_ranks(figures);
  if (figures.opponent_memory > 0)
    std::printf("%s: %.1f MiB resident\n", figures.opponent.c_str(),
                mebibytes(figures.opponent_memory));
}

nlohmann::ordered_json to_json(const std::vector<OperatorProfile::Line>& lines, int steps,
                               double seconds) {
  nlohmann::ordered_json result{{"seconds", seconds / steps},
                                {"moving_share", moving(lines) / seconds},
                                {"elsewhere_share", elsewhere(lines, seconds) / seconds}};
  for (const auto& line : lines)
    result["operators"].push_back({{"name", line.name},
                                   {"calls", static_cast<double>(line.calls) / steps},
                                   {"seconds", line.seconds / steps},
                                   {"share", line.seconds / seconds},
                                   {"moves_data", line.moves_data}});
  return result;
}

void print(const std::vector<OperatorProfile::Line>& lines, int steps, double seconds) {
  constexpr double kLeastShare = 0.002;
  std::printf("\nwhere rank 0 spends a step of %.4f s (* only moves data):\n", seconds / steps);
  std::printf("  %-44s %10s %12s %8s\n", "operator", "calls", "ms", "share");
  const auto row = [&](const std::string& name, double calls, double spent) {
    std::printf("  %-44s %10.1f %12.3f %7.1f%%\n", name.c_str(), calls / steps, 1e3 * spent / steps,
                100 * spent / seconds);
  };
  double calls = 0, rest = 0;
  for (const auto& line : lines) {
    const auto count = static_cast<double>(line.calls);
    if (line.seconds >= kLeastShare * seconds) {
      row(line.name + (line.moves_data ? " *" : ""), count, line.seconds);
    } else {
      calls += count;
      rest += line.seconds;
    }
  }
  row("others, below 0.2 % each", calls, rest);
  row("no operator of libtorch", 0, elsewhere(lines, seconds));
  std::printf("  operators that only move data: %.1f %%\n", 100 * moving(lines) / seconds);
}

}  // namespace mpi4dl
