#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>

#include "plan/stage_plan.hpp"

namespace mpi4dl {

/// Fills in the boxes of a stage plan; see StagePlan for the idea.
class BoundsInference {
 public:
  explicit BoundsInference(StagePlan& plan) : plan_(plan) {}
  void run();

 private:
  /// Maps a node to what consumers need of it on each rank, across edges without and with an
  /// exchange.
  using Needs = std::map<int, std::pair<std::vector<Box>, std::vector<Box>>>;

  void find_nodes();
  void check_image() const;
  void find_joined();
  void place_owned();
  void walk_backwards();
  void visit_group(std::span<const int> nodes);
  void put_behind_exchange(std::span<const int> nodes, bool all);
  void visit(int node);
  void decide_exchange(int node);
  bool needs_exchange(int node) const;
  std::vector<Box> computed(int node) const;
  void place_padding(int node);
  void find_fused_groups();
  void extend_fused_group(int first);
  std::optional<int> next_in_fused_group(const std::vector<int>& group) const;
  void list_reads(int node);
  template <typename Op>
  bool is(int node) const;
  bool sent_on(int node) const;
  bool tiled(int node) const;
  Needs needs_around(std::span<const int> nodes) const;
  int exchanges_for(const Needs& values) const;

  StagePlan& plan_;
  std::vector<std::vector<int>> consumers_;
  // Per node and rank, what consumers need across edges without and with an exchange.
  std::vector<std::vector<Box>> local_need_, exchange_need_;
};

}  // namespace mpi4dl
