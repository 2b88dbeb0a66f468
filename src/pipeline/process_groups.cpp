#include "pipeline/process_groups.hpp"

#include <algorithm>

namespace mpi4dl {
namespace {

std::vector<int> pipeline_ranks(const Layout& layout, int replica, int direction) {
  std::vector<int> ranks;
  for (int stage = 0; stage < static_cast<int>(layout.stages().size()); ++stage)
    for (const int rank : layout.stage_ranks(replica, direction, stage)) ranks.push_back(rank);
  return ranks;
}

std::vector<int> replica_ranks(const Layout& layout, int direction, int stage) {
  std::vector<int> ranks;
  for (int replica = 0; replica < layout.replicas(); ++replica)
    for (const int rank : layout.stage_ranks(replica, direction, stage)) ranks.push_back(rank);
  return ranks;
}

std::vector<int> data_parallel_ranks(const Layout& layout, int stage) {
  std::vector<int> ranks;
  for (int direction = 0; direction < layout.directions(); ++direction)
    for (const int rank : replica_ranks(layout, direction, stage)) ranks.push_back(rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace

/// A group is made by its members alone; all ranks go through the groups in the same order, so
/// nobody waits for one who waits for him.
ProcessGroups::ProcessGroups(const Layout& layout, const Communicator& world) {
  const std::vector<Role> roles = layout.roles(world.rank());
  const int stages = static_cast<int>(layout.stages().size());
  for (const Role& role : roles) {
    const auto all = [&](auto&& ranks_of) {
      std::optional<Communicator> mine;
      for (int stage = 0; stage < stages; ++stage)
        if (auto made = world.subgroup(ranks_of(stage))) mine = std::move(made);
      return *mine;
    };
    const int direction = role.direction;
    directions_.push_back(
        {role, *world.subgroup(pipeline_ranks(layout, role.replica, direction)),
         all([&](int stage) { return layout.stage_ranks(role.replica, direction, stage); }),
         all([&](int stage) { return replica_ranks(layout, direction, stage); })});
  }
  for (int stage = 0; stage < stages; ++stage)
    if (const auto made = world.subgroup(data_parallel_ranks(layout, stage)))
      data_parallel_.emplace(stage, *made);
}

}  // namespace mpi4dl
