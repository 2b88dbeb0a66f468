#pragma once

#include <optional>

#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// Fills in the boxes of a stage plan; see StagePlan for the idea.
class BoundsInference {
 public:
  explicit BoundsInference(StagePlan& plan) : plan_(plan) {}
  void run();

 private:
  void find_nodes();
  void find_joined();
  void place_owned();
  void walk_backwards();
  void visit(int node);
  void decide_exchange(int node);
  void make_room(int node);
  void find_passes();
  void extend_pass(int first);
  std::optional<int> next_in_pass(const std::vector<int>& pass) const;
  void list_reads(int node);
  template <typename Op>
  bool is(int node) const;
  bool sent_on(int node) const;
  bool fits(int node) const;
  bool only_feeds_joined(int node) const;
  void check_tiles(int node) const;

  StagePlan& plan_;
  std::vector<std::vector<int>> consumers_;
  // Per node and rank, what consumers need across edges without and with an exchange.
  std::vector<std::vector<Box>> local_need_, exchange_need_;
};

}  // namespace mpi4dl
