#include "simulate/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

namespace mpi4dl {
namespace {

/// Identifies an action of a stage: what all its ranks do together.
using StageAction = std::tuple<Action::Kind, int, int, int>;  // kind, direction, stage, batch

class Simulator {
 public:
  Simulator(const Layout& layout, const std::vector<Schedule>& by_rank,
            const std::vector<StageCost>& costs)
      : layout_(layout), by_rank_(by_rank), costs_(costs) {
    next_.resize(by_rank.size(), 0);
    free_at_.resize(by_rank.size(), 0);
    live_.resize(by_rank.size(), 0);
    result_.peak_live.resize(by_rank.size(), 0);
  }

  Simulation run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < ranks(); ++rank)
        while (can_start(rank)) {
          start(rank);
          moved = true;
        }
    }
    finish();
    return std::move(result_);
  }

 private:
  int ranks() const { return static_cast<int>(by_rank_.size()); }
  int last_stage() const { return static_cast<int>(layout_.stages().size()) - 1; }

  const Action* next(int rank) const {
    return next_[rank] < by_rank_[rank].size() ? &by_rank_[rank][next_[rank]] : nullptr;
  }
  int stage_of(int rank, const Action& action) const {
    return layout_.roles(rank)[action.direction].stage;
  }
  std::vector<int> ranks_of_stage(int rank, const Action& action) const {
    return layout_.stage_ranks(0, action.direction, stage_of(rank, action));
  }

  /// Returns what must be finished before this stage can begin the action.
  std::vector<StageAction> requirements(const Action& action, int stage) const {
    using enum Action::Kind;
    const auto of = [&](Action::Kind kind, int where) {
      return StageAction{kind, action.direction, where, action.batch};
    };
    if (action.kind == forward)
      return stage == 0 ? std::vector<StageAction>{} : std::vector{of(forward, stage - 1)};
    std::vector<StageAction> needed{of(forward, stage)};
    if (stage < last_stage()) needed.push_back(of(backward, stage + 1));
    return needed;
  }

  bool can_start(int rank) const {
    const Action* action = next(rank);
    if (action == nullptr) return false;
    for (const int other : ranks_of_stage(rank, *action))
      if (next(other) == nullptr || *next(other) != *action) return false;
    for (const StageAction& needed : requirements(*action, stage_of(rank, *action)))
      if (!finished_.contains(needed)) return false;
    return true;
  }

  void start(int rank) {
    const Action action = *next(rank);
    const int stage = stage_of(rank, action);
    const bool forward = action.kind == Action::Kind::forward;
    double begin = 0;
    for (const StageAction& needed : requirements(action, stage))
      begin = std::max(begin, finished_.at(needed));
    for (const int other : ranks_of_stage(rank, action)) begin = std::max(begin, free_at_[other]);
    const double end = begin + (forward ? costs_[stage].forward : costs_[stage].backward);
    for (const int other : ranks_of_stage(rank, action)) {
      free_at_[other] = end;
      ++next_[other];
      live_[other] += forward ? 1 : -1;
      result_.peak_live[other] = std::max(result_.peak_live[other], live_[other]);
      result_.spans.push_back({other, action, begin, end});
      busy_ += end - begin;
    }
    finished_[{action.kind, action.direction, stage, action.batch}] = end;
  }

  void finish() {
    for (int rank = 0; rank < ranks(); ++rank)
      if (const Action* action = next(rank); action != nullptr && result_.stuck.empty())
        result_.stuck = fmt::format("rank {} waits to start {} of stage {}", rank,
                                    to_string({*action}), stage_of(rank, *action));
    if (result_.stuck.empty()) result_.stuck = missing();
    result_.complete = result_.stuck.empty();
    result_.duration = *std::max_element(free_at_.begin(), free_at_.end());
    result_.bubble = 1 - busy_ / (result_.duration * ranks());
    std::sort(result_.spans.begin(), result_.spans.end(), [](const auto& a, const auto& b) {
      return std::tie(a.begin, a.rank) < std::tie(b.begin, b.rank);
    });
  }

  /// Returns what is missing: a micro-batch that somebody ran must go both ways through every
  /// stage.
  std::string missing() const {
    for (const auto& [done, when] : finished_)
      for (const auto kind : {Action::Kind::forward, Action::Kind::backward})
        for (int stage = 0; stage <= last_stage(); ++stage)
          if (!finished_.contains({kind, std::get<1>(done), stage, std::get<3>(done)}))
            return fmt::format("micro-batch {} never goes {} through stage {}", std::get<3>(done),
                               kind == Action::Kind::forward ? "forward" : "backward", stage);
    return "";
  }

  const Layout& layout_;
  const std::vector<Schedule>& by_rank_;
  const std::vector<StageCost>& costs_;
  std::vector<size_t> next_;
  std::vector<double> free_at_;
  std::vector<int> live_;
  std::map<StageAction, double> finished_;
  double busy_ = 0;
  Simulation result_;
};

}  // namespace

Simulation simulate(const Layout& layout, const std::vector<Schedule>& by_rank,
                    const std::vector<StageCost>& costs) {
  return Simulator(layout, by_rank, costs).run();
}

std::string to_grid(const Simulation& simulation, int ranks) {
  constexpr int kWidth = 4;
  const auto columns = static_cast<size_t>(std::ceil(simulation.duration));
  std::vector<std::vector<std::string>> cells(ranks, std::vector<std::string>(columns, "."));
  for (const auto& span : simulation.spans)
    for (auto at = static_cast<size_t>(span.begin); at < static_cast<size_t>(std::ceil(span.end));
         ++at)
      cells[span.rank][at] = to_string({span.action});
  std::vector<std::string> names;
  std::vector<int> rows;  // the first rank of each
  for (int rank = 0, last = 0; rank < ranks; rank = last + 1) {
    for (last = rank; last + 1 < ranks && cells[last + 1] == cells[rank];) ++last;
    names.push_back(last == rank ? fmt::format("rank {}", rank)
                                 : fmt::format("ranks {}-{}", rank, last));
    rows.push_back(rank);
  }
  const auto shorter = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  const size_t width = std::max_element(names.begin(), names.end(), shorter)->size();
  std::string text;
  for (size_t row = 0; row < rows.size(); ++row) {
    text += fmt::format("{:<{}} |", names[row], width);
    for (const std::string& cell : cells[rows[row]]) text += fmt::format(" {:<{}}", cell, kWidth);
    text += "\n";
  }
  return text;
}

}  // namespace mpi4dl
