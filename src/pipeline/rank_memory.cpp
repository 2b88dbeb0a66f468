#include "pipeline/rank_memory.hpp"

#include <algorithm>
#include <set>

#include "plan/memory.hpp"
#include "plan/recompute.hpp"

namespace mpi4dl {
namespace {

/// Values that a stage holds of each kind.
struct Elements {
  int64_t trainable = 0, statistics = 0;
};

Elements count_parameters(const StagePlan& stage) {
  Elements count;
  for (const int id : stage.nodes())
    for (const Parameter& parameter : stage.graph().node(id).parameters)
      (parameter.trainable ? count.trainable : count.statistics) += parameter.elements();
  return count;
}

/// What every rank of a stage holds, whatever its tile.
RankMemory held(const StagePlan& stage, const MemoryOptions& options) {
  const auto [trainable, statistics] = count_parameters(stage);
  const bool narrow = options.value_bytes < options.sum_bytes;
  const int64_t sums = options.sum_bytes;
  return {.parameters = trainable * (options.value_bytes + (narrow ? sums : 0)) + statistics * sums,
          .gradients = (trainable + statistics) * sums,
          .optimizer = trainable * sums * options.optimizer_states};
}

/// Of each tile of a stage.
std::vector<ActivationBytes> activations(const StagePlan& stage, const MemoryOptions& options) {
  const std::vector<CellRange> recomputed =
      options.recompute ? recomputed_cells(stage) : std::vector<CellRange>();
  std::vector<ActivationBytes> tiles;
  for (int tile = 0; tile < stage.grid().size(); ++tile)
    tiles.push_back(activation_bytes(stage, tile, options.value_bytes, recomputed));
  return tiles;
}

/// The pixels of one image that a tile reads, as data sets hand them over.
int64_t pixel_bytes(const StagePlan& stage, int tile) {
  int64_t bytes = 0;
  for (const int id : stage.inputs()) {
    const Box& box = stage.value(id).computed[tile];
    if (id == stage.graph().input().id && !box.empty())
      bytes += box.elements() / box[0].length() * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

/// The worst moment of a schedule: what waits for its backward, and all of what runs.
int64_t worst_moment(const Schedule& schedule, const std::vector<ActivationBytes>& by_direction) {
  int64_t kept = 0, most = 0;
  for (const Action& action : schedule) {
    const ActivationBytes& one = by_direction[action.direction];
    if (action.kind == Action::Kind::backward) kept -= one.kept;
    most = std::max(most, kept + one.with_live(1));
    if (action.kind == Action::Kind::forward) kept += one.kept;
  }
  return most;
}

}  // namespace

std::vector<RankMemory> rank_memory(const PipelinePlan& plan, const Layout& layout,
                                    const MemoryOptions& options) {
  std::vector<RankMemory> of_stage;
  std::vector<std::vector<ActivationBytes>> of_tile;
  for (const StagePlan& stage : plan.stages()) {
    of_stage.push_back(held(stage, options));
    of_tile.push_back(activations(stage, options));
  }
  const PipelineShape shape{static_cast<int>(plan.stages().size()), options.batch.parts,
                            options.batch.times};
  std::vector<RankMemory> by_rank;
  for (int rank = 0; rank < layout.group_size(); ++rank) {
    const std::vector<Role> roles = layout.roles(rank);
    RankMemory all;
    std::set<int> stages;
    std::vector<ActivationBytes> by_direction;
    for (const Role& role : roles) {
      by_direction.push_back(of_tile[role.stage][role.tile]);
      all.pixels = std::max(
          all.pixels, options.boxes_ahead * pixel_bytes(plan.stages()[role.stage], role.tile));
      if (!stages.insert(role.stage).second) continue;
      all.parameters += of_stage[role.stage].parameters;
      all.gradients += of_stage[role.stage].gradients;
      all.optimizer += of_stage[role.stage].optimizer;
    }
    for (const ActivationBytes& one : by_direction)
      all.unused = std::max(all.unused, one.reserved - one.peak);
    all.process = kProcessBytes;
    all.activations =
        worst_moment(make_schedule(options.schedule, shape, roles[0].stage), by_direction);
    by_rank.push_back(all);
  }
  return by_rank;
}

}  // namespace mpi4dl
