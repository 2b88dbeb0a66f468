#include "report/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/byte_size.hpp"

namespace mpi4dl {
namespace {

using Json = nlohmann::ordered_json;

std::string plural(int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string rank_range(const std::vector<int>& ranks) {
  return ranks.size() == 1 ? fmt::format("{}", ranks[0])
                           : fmt::format("{}-{}", ranks.front(), ranks.back());
}

double share_of(int64_t flops, const RankCost& cost) {
  return static_cast<double>(flops) / static_cast<double>(std::max<int64_t>(cost.flops, 1));
}

/// Returns the bytes that a rank sends: what travels has the type of the activations.
int64_t bytes_sent(const PlanReport& report, int stage) {
  return report.costs[stage].elements_sent * report.run.options.value_bytes;
}

int64_t all_ranks(const PlannedRun& run) {
  int64_t sum = 0;
  for (const RankMemory& rank : run.memory) sum += rank.total();
  return sum * run.layout.replicas();
}

int most_alive(const Simulation& simulation) {
  return *std::max_element(simulation.peak_live.begin(), simulation.peak_live.end());
}

void print_work(const PlanReport& report) {
  const auto& [layout, all_cells, options, plan, memory] = report.run;
  fmt::print("\nwork of the busiest rank of each stage, for one micro-batch of {}:\n",
             plan.micro_batch());
  fmt::print("{:>5}  {:<9} {:<9} {:<34} {:>10} {:>10} {:>9} {:>10}\n", "stage", "ranks", "grid",
             "cells", "GFLOP fwd", "redundant", "messages", "sent");
  for (int stage = 0; stage < static_cast<int>(plan.stages().size()); ++stage) {
    const RankCost& cost = report.costs[stage];
    const CellRange& cells = all_cells[stage];
    const std::string names =
        fmt::format("{} ({} .. {})", cells.last - cells.first, report.graph.cells()[cells.first],
                    report.graph.cells()[cells.last - 1]);
    fmt::print("{:>5}  {:<9} {:<9} {:<34} {:>10.3f} {:>9.1f}% {:>9} {:>10}\n", stage,
               rank_range(layout.stage_ranks(0, 0, stage)), to_string(layout.stages()[stage]),
               names, static_cast<double>(cost.flops) * 1e-9,
               100 * share_of(cost.redundant_flops, cost), cost.messages,
               readable_bytes(bytes_sent(report, stage)));
  }
}

/// Says where more tiles would not help.
void print_lonely_work(const PlanReport& report) {
  constexpr double kMuch = 0.05;
  for (size_t stage = 0; stage < report.costs.size(); ++stage) {
    const double share = share_of(report.costs[stage].lonely_flops, report.costs[stage]);
    if (share < kMuch) continue;
    fmt::print(
        "stage {}: {:.0f} % of that is on maps with fewer rows or columns than there are "
        "tiles, which the first tile has alone\n",
        stage, 100 * share);
  }
}

using Columns = std::vector<std::pair<const char*, int64_t>>;

Columns columns_of(const RankMemory& memory) {
  Columns columns{{"parameters", memory.parameters},
                  {"gradients", memory.gradients},
                  {"optimizer", memory.optimizer},
                  {"activations", memory.activations}};
  const auto add = [&](const Columns& more) {
    columns.insert(columns.end(), more.begin(), more.end());
  };
  if (memory.has_device)
    add({{"unused", memory.unused},
         {"on device", memory.on_device()},
         {"pixels", memory.pixels},
         {"staging", memory.staging},
         {"process", memory.process},
         {"on host", memory.on_host()}});
  else
    add({{"pixels", memory.pixels},
         {"unused", memory.unused},
         {"process", memory.process},
         {"in all", memory.total()}});
  return columns;
}

void print_memory(const PlannedRun& run) {
  const std::vector<RankMemory> stages = run.busiest();
  fmt::print("\nmemory of the rank of each stage that needs the most{}:\n",
             run.options.on_device ? ", on its device and on the host" : "");
  std::string titles = fmt::format("{:>5}  {:<9}", "stage", "ranks");
  for (const auto& [title, bytes] : columns_of(stages[0]))
    titles += fmt::format(" {:>{}}", title, std::max<size_t>(10, std::strlen(title)));
  fmt::print("{}\n", titles);
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    std::string line =
        fmt::format("{:>5}  {:<9}", stage, rank_range(run.layout.stage_ranks(0, 0, stage)));
    for (const auto& [title, bytes] : columns_of(stages[stage]))
      line +=
          fmt::format(" {:>{}}", readable_bytes(bytes), std::max<size_t>(10, std::strlen(title)));
    fmt::print("{}\n", line);
  }
  const int ranks = run.layout.group_size() * run.layout.replicas();
  if (ranks > 1)
    fmt::print("{} together: {}\n", plural(ranks, "rank"), readable_bytes(all_ranks(run)));
}

void print_schedule(const PlanReport& report) {
  const int alive = most_alive(report.simulation);
  fmt::print(
      "\nschedule {}, forward 1 and backward 2 units of time: bubble {:.0f} %, at most {} "
      "micro-batch{} alive\n{}",
      to_string(report.run.options.schedule), 100 * report.simulation.bubble, alive,
      alive == 1 ? "" : "es", to_grid(report.simulation, report.run.layout.group_size()));
}

std::string ranks_instead(const Remedy& remedy, const PlannedRun& run) {
  const int before = run.layout.group_size();
  if (remedy.ranks == before) return "";
  return fmt::format("{}{} ranks instead of {}", remedy.price.empty() ? "" : ", ", remedy.ranks,
                     before);
}

void print_remedies(const Remedies& remedies, const PlannedRun& run) {
  const auto line = [&](const Remedy& remedy) {
    fmt::print("  {:<36} {:>9} a rank   {}{}\n", remedy.flags, readable_bytes(remedy.bytes),
               remedy.price, ranks_instead(remedy, run));
  };
  if (remedies.fitting.empty()) {
    fmt::print("no change that was tried would make it fit; the least memory needs\n");
    line(remedies.least);
    return;
  }
  fmt::print("what would make it fit, the cheapest first:\n");
  for (const Remedy& remedy : remedies.fitting) line(remedy);
}

void print_answer(const MemoryAnswer& answer, const PlannedRun& run) {
  const int64_t most = run.most();
  const char* place = run.options.on_device ? "device" : "rank";
  if (answer.fits) {
    fmt::print("\nfits into {} a {}: yes, {} needed, {} to spare\n", readable_bytes(answer.limit),
               place, readable_bytes(most), readable_bytes(answer.limit - most));
    return;
  }
  fmt::print("\nfits into {} a {}: no, {} needed, {} too much\n", readable_bytes(answer.limit),
             place, readable_bytes(most), readable_bytes(most - answer.limit));
  print_remedies(answer.remedies, run);
}

Json to_json(const RankMemory& memory) {
  Json json{{"parameters", memory.parameters}, {"gradients", memory.gradients},
            {"optimizer", memory.optimizer},   {"activations", memory.activations},
            {"pixels", memory.pixels},         {"unused", memory.unused},
            {"process", memory.process},       {"total", memory.total()}};
  if (memory.has_device) {
    json["staging"] = memory.staging;
    json["on_device"] = memory.on_device();
    json["on_host"] = memory.on_host();
  }
  return json;
}

Json to_json(const Remedy& remedy) {
  return {{"flags", remedy.flags},
          {"price", remedy.price},
          {"ranks", remedy.ranks},
          {"bytes_per_rank", remedy.bytes}};
}

}  // namespace

void print(const PlanReport& report) {
  const Layout& layout = report.run.layout;
  fmt::print("{}, {} parameters, {:.3f} GFLOP forward an image, {} of {}\n", report.model,
             report.graph.parameter_count(),
             static_cast<double>(flops_per_image(report.graph)) * 1e-9,
             plural(layout.replicas(), "replica"), plural(layout.group_size(), "rank"));
  print_work(report);
  print_lonely_work(report);
  print_memory(report.run);
  print_schedule(report);
  if (report.answer) print_answer(*report.answer, report.run);
}

Json to_json(const PlanReport& report) {
  const PlannedRun& run = report.run;
  const std::vector<RankMemory> memory = run.busiest();
  Json stages = Json::array();
  for (int stage = 0; stage < static_cast<int>(memory.size()); ++stage) {
    const CellRange& cells = run.cells[stage];
    const RankCost& cost = report.costs[stage];
    stages.push_back({{"grid", to_string(run.layout.stages()[stage])},
                      {"ranks", run.layout.stages()[stage].size()},
                      {"cells", cells.last - cells.first},
                      {"flops_forward", cost.flops},
                      {"redundant_flops", cost.redundant_flops},
                      {"messages", cost.messages},
                      {"bytes_sent", bytes_sent(report, stage)},
                      {"bytes_per_rank", to_json(memory[stage])}});
  }
  Json json{{"model", report.model},
            {"parameters", report.graph.parameter_count()},
            {"image", report.graph.shape(report.graph.input()).space},
            {"flops_forward_per_image", flops_per_image(report.graph)},
            {"ranks", run.layout.group_size() * run.layout.replicas()},
            {"replicas", run.layout.replicas()},
            {"micro_batch", run.plan.micro_batch()},
            {"schedule", to_string(run.options.schedule)},
            {"bubble", report.simulation.bubble},
            {"micro_batches_alive", most_alive(report.simulation)},
            {"stages", stages},
            {"bytes_per_rank", run.most()},
            {"bytes_of_all_ranks", all_ranks(run)}};
  if (!report.answer) return json;
  Json remedies = Json::array();
  for (const Remedy& remedy : report.answer->remedies.fitting) remedies.push_back(to_json(remedy));
  json["limit_per_rank"] = report.answer->limit;
  json["fits"] = report.answer->fits;
  json["remedies"] = remedies;
  return json;
}

}  // namespace mpi4dl
