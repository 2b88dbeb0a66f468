#include "bench/training_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/median.hpp"
#include "base/units.hpp"

namespace mpi4dl {
namespace {

double images_per_second(const TrainingFigures& figures, const std::vector<double>& seconds) {
  return static_cast<double>(figures.images) / median(seconds);
}

double gflops(const TrainingFigures& figures) {
  return figures.flops * 1e-9 / median(figures.seconds);
}

/// Returns "one_rank" for "one rank".
std::string key_of(const std::string& side) {
  std::string key = side;
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

void print_side(const std::string& name, const TrainingFigures& figures,
                const std::vector<double>& seconds) {
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  fmt::print("{:<16} {:>12.4f} {:>14.4f} {:>12.4f} {:>12.4f}\n", name,
             images_per_second(figures, seconds), median(seconds), *least, *most);
}

void print_ranks(const TrainingFigures& figures) {
  fmt::print("\n{:>5} {:>8} {:>9} {:>14} {:>9} {:>12} {:>12} {:>14}\n", "rank", "threads",
             "compute", "communication", "waiting", "CPU s/step", "tensors MiB", "resident MiB");
  const auto steps = static_cast<double>(figures.seconds.size());
  for (size_t rank = 0; rank < figures.ranks.size(); ++rank) {
    const auto& [costs, resident, threads] = figures.ranks[rank];
    const auto share = [&](double seconds) { return 100 * seconds / costs.seconds; };
    fmt::print("{:>5} {:>8} {:>8.1f}% {:>13.1f}% {:>8.1f}% {:>12.3f} {:>12.1f} {:>14.1f}\n", rank,
               threads, share(costs.seconds - costs.communication - costs.waiting),
               share(costs.communication), share(costs.waiting), costs.cpu / steps,
               mebibytes(costs.peak_bytes), mebibytes(resident));
  }
}

/// Returns what the operators do not account for: our own kernels and bookkeeping.
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

nlohmann::ordered_json to_json(const TrainingFigures& figures) {
  nlohmann::ordered_json result{{"images_per_s", images_per_second(figures, figures.seconds)}};
  if (!figures.other.empty()) {
    const double other = images_per_second(figures, figures.other_seconds);
    result[key_of(figures.other) + "_images_per_s"] = other;
    result["ratio"] = images_per_second(figures, figures.seconds) / other;
  }
  result["gflops"] = gflops(figures);
  result["gemm_peak_gflops"] = figures.gemm_gflops;
  result["gemm_type"] = figures.gemm_type;
  result["gemm_fraction"] = gflops(figures) / figures.gemm_gflops;
  result["peak_bytes"] = nlohmann::ordered_json::array();
  const auto steps = static_cast<double>(figures.seconds.size());
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
  if (figures.other_memory > 0)
    result[key_of(figures.other) + "_resident_bytes"] = figures.other_memory;
  result["seconds"] = figures.seconds;
  if (!figures.other.empty()) result[key_of(figures.other) + "_seconds"] = figures.other_seconds;
  return result;
}

void print(const TrainingFigures& figures) {
  fmt::print("{:<16} {:>12} {:>14} {:>12} {:>12}\n", "", "images/s", "median s/step", "least",
             "most");
  print_side("this layout", figures, figures.seconds);
  if (!figures.other.empty()) {
    print_side(figures.other, figures, figures.other_seconds);
    fmt::print("{:<16} {:>12.3f}\n", "ratio",
               images_per_second(figures, figures.seconds) /
                   images_per_second(figures, figures.other_seconds));
  }
  fmt::print("{:<16} {:>12.1f}   {:.1f} % of {:.1f}, a {} matrix product there\n", "GFLOP/s",
             gflops(figures), 100 * gflops(figures) / figures.gemm_gflops, figures.gemm_gflops,
             figures.gemm_type);
  print_ranks(figures);
  if (figures.other_memory > 0)
    fmt::print("{}: {:.1f} MiB resident\n", figures.other, mebibytes(figures.other_memory));
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
  fmt::print("\nwhere rank 0 spends a step of {:.4f} s (* only moves data):\n", seconds / steps);
  fmt::print("  {:<44} {:>10} {:>12} {:>8}\n", "operator", "calls", "ms", "share");
  const auto row = [&](const std::string& name, double calls, double spent) {
    fmt::print("  {:<44} {:>10.1f} {:>12.3f} {:>7.1f}%\n", name, calls / steps, 1e3 * spent / steps,
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
  fmt::print("  operators that only move data: {:.1f} %\n", 100 * moving(lines) / seconds);
}

}  // namespace mpi4dl
