#include "simulate/rank_memory.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include "plan/recompute.hpp"

namespace mpi4dl {
namespace {

/// Counts the values that a stage holds of each kind.
struct Elements {
  int64_t trained = 0, frozen = 0, statistics = 0;
  int64_t computed = 0, computed_gradients = 0;  ///< of weights that follow from parameters
};

Elements count_parameters(const StagePlan& stage) {
  Elements count;
  for (const Parameter& parameter : distinct_parameters(stage.graph(), stage.nodes())) {
    int64_t& kind = parameter.trained()     ? count.trained
                    : parameter.statistic() ? count.statistics
                                            : count.frozen;
    kind += parameter.elements();
  }
  for (const auto& [parameter, formula] : distinct_formulas(stage.graph(), stage.nodes())) {
    count.computed += parameter.elements();
    if (parameter.trained()) count.computed_gradients += parameter.elements();
  }
  return count;
}

/// Returns what every rank of a stage holds, whatever its tile.
RankMemory held(const StagePlan& stage, const MemoryOptions& options) {
  const auto [trained, frozen, statistics, computed, computed_gradients] = count_parameters(stage);
  const bool narrow = options.value_bytes < options.sum_bytes;
  const int64_t sums = options.sum_bytes;
  return {.parameters = trained * (options.value_bytes + (narrow ? sums : 0)) +
                        (frozen + computed) * options.value_bytes + statistics * sums,
          .gradients = (trained + statistics + computed_gradients) * sums,
          .optimizer = trained * sums * options.optimizer_states};
}

/// Returns the activations of each tile of a stage.
std::vector<ActivationBytes> activations(const StagePlan& stage, const MemoryOptions& options) {
  const std::vector<CellRange> recomputed =
      options.recompute ? recomputed_cells(stage) : std::vector<CellRange>();
  std::vector<ActivationBytes> tiles;
  for (int tile = 0; tile < stage.grid().size(); ++tile)
    tiles.push_back(
        activation_bytes(stage, tile, options.value_bytes, recomputed, options.kernels));
  return tiles;
}

/// Returns the pixels of one image that a tile reads, as data sets hand them over.
int64_t pixel_bytes(const StagePlan& stage, int tile) {
  int64_t bytes = 0;
  for (const int id : stage.inputs()) {
    const Box& box = stage.value(id).computed[tile];
    if (id == stage.graph().input().id && !box.empty())
      bytes += box.elements() / box[0].length() * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

/// Returns the halos of the largest exchange of a tile, both ways, and what other stages send to it
/// and get from it.
int64_t travelling_bytes(const StagePlan& stage, int tile, int64_t element_size) {
  int64_t halo = 0, between_stages = 0;
  for (const int id : stage.nodes()) {
    const ValuePlan& value = stage.value(id);
    if (!value.exchanged()) continue;
    const Box& box = value.extended[tile];
    halo = std::max(halo, box.elements() - intersect(box, value.owned[tile]).elements());
  }
  for (const int id : stage.inputs())
    if (id != stage.graph().input().id) between_stages += stage.value(id).computed[tile].elements();
  for (const int id : stage.outputs()) between_stages += stage.value(id).owned[tile].elements();
  return (2 * halo + between_stages) * element_size;
}

/// Returns what libtorch pins for so many bytes: a power of two.
int64_t pinned(int64_t bytes) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
}

/// Counts the ranks that hold the parameters of a stage.
int data_parallel_ranks(const Layout& layout, int stage) {
  return layout.stages()[stage].size() * layout.replicas() * layout.directions();
}

/// Returns the worst moment of a schedule: what waits for its backward, and all of what runs.
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

/// On a device, parameters are made on the host before the first step; gradients are summed up
/// there later, in a copy, which ranks of a node read in memory that they share.
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
    int64_t summed = 0;  // gradients, on the host
    std::set<int> stages;
    std::vector<ActivationBytes> by_direction;
    for (const Role& role : roles) {
      by_direction.push_back(of_tile[role.stage][role.tile]);
      all.pixels = std::max(
          all.pixels, options.boxes_ahead * pixel_bytes(plan.stages()[role.stage], role.tile));
      if (options.on_device)
        all.staging += travelling_bytes(plan.stages()[role.stage], role.tile, options.value_bytes);
      if (!stages.insert(role.stage).second) continue;
      all.parameters += of_stage[role.stage].parameters;
      all.gradients += of_stage[role.stage].gradients;
      if (data_parallel_ranks(layout, role.stage) > 1)
        summed += of_stage[role.stage].gradients + pinned(of_stage[role.stage].gradients);
      all.optimizer += of_stage[role.stage].optimizer;
    }
    for (const ActivationBytes& one : by_direction)
      all.unused = std::max(all.unused, one.reserved - one.peak);
    all.process = kProcessBytes;
    all.has_device = options.on_device;
    if (options.on_device) all.staging += std::max(all.parameters, summed);
    all.activations =
        worst_moment(make_schedule(options.schedule, shape, roles[0].stage), by_direction);
    by_rank.push_back(all);
  }
  return by_rank;
}

}  // namespace mpi4dl
