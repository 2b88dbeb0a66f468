#include "layout/layout.hpp"

#include <fmt/ranges.h>

#include <map>
#include <regex>
#include <tuple>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr int kTiles = 4;   // where flags ask for tiles without saying how many
constexpr int kSplits = 2;  // of the benchmarks

struct Kind {
  bool tiles, both_ways;
};

const std::map<std::string, Kind> kKinds{{"layer", {false, false}},
                                         {"spatial", {true, false}},
                                         {"gems", {false, true}},
                                         {"gems-spatial", {true, true}}};

/// Reads "2x2", "4" (tiles, most square), "b:2" (batch parts) or "b:2x1x2" (both).
Grid parse_stage(const std::string& text) {
  static const std::regex form(
      "(?:b:([1-9][0-9]{0,5})(?:x([1-9][0-9]{0,5})x([1-9][0-9]{0,5}))?)|"
      "([1-9][0-9]{0,5})(?:x([1-9][0-9]{0,5}))?");
  std::smatch match;
  validate(std::regex_match(text, match, form),
           "'{}' is not a stage; use rows x columns such as 2x2, a number of tiles, "
           "or b:2 for batch parts",
           text);
  const auto number = [&](int group) { return match[group].matched ? std::stoi(match[group]) : 1; };
  if (match[1].matched) return {number(1), number(2), number(3)};
  if (match[5].matched) return {1, number(4), number(5)};
  return make_grid("square", number(4));
}

std::vector<Grid> parse_stages(const std::string& text) {
  std::vector<Grid> stages;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    stages.push_back(parse_stage(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return stages;
}

int number_of_spatial_stages(const ParallelOptions& options) {
  if (options.spatial_size >= 0) return options.spatial_size;
  return options.spatial_parts.empty() ? 0 : 1;
}

int tiles_of(const ParallelOptions& options, int stage) {
  if (options.spatial_parts.empty()) return kTiles;
  return options.spatial_parts.size() == 1 ? options.spatial_parts[0]
                                           : options.spatial_parts[stage];
}

void check_no_tiles(const ParallelOptions& options) {
  const std::string parts = fmt::format("{}", fmt::join(options.spatial_parts, ","));
  for (const auto& [asked, unasked] :
       {std::pair{parts + " spatial parts", parts.empty() || parts == std::to_string(kTiles)},
        std::pair{"slice method " + options.slice_method, options.slice_method == "square"}})
    validate(unasked,
             "no stage has tiles, so there is no use for {}; runs with spatial size 1 and spatial "
             "parts have them, such as those in benchmarks/spatial_parallelism",
             asked);
}

std::vector<Grid> stages_from_flags(const ParallelOptions& options) {
  const int spatial = number_of_spatial_stages(options);
  const int splits = options.split_size > 0 ? options.split_size : std::max(1, spatial + 1);
  validate(spatial <= splits, "spatial size {} is more than split size {}; use at most {}", spatial,
           splits, splits);
  if (spatial == 0) check_no_tiles(options);
  validate(options.spatial_parts.size() <= 1 ||
               static_cast<int>(options.spatial_parts.size()) == spatial,
           "spatial parts {} name {} stages, but the spatial size is {}; give one number or {}",
           fmt::join(options.spatial_parts, ","), options.spatial_parts.size(), spatial, spatial);
  validate(options.local_dp == 1 || spatial < splits,
           "local DP {} is about stages without tiles, but spatial size {} gives tiles to all of "
           "them; use a larger split size",
           options.local_dp, spatial);
  std::vector<Grid> stages;
  for (int stage = 0; stage < splits; ++stage) {
    if (stage < spatial) {
      stages.push_back(make_grid(options.slice_method, tiles_of(options, stage)));
    } else {
      stages.push_back({.batch = options.local_dp});
    }
  }
  return stages;
}

/// Returns whether tiles get a rank behind them for the layers whose images are small: unless the
/// user decides.
bool adds_a_stage(const ParallelOptions& options) {
  return options.split_size == 0 && number_of_spatial_stages(options) == 1;
}

std::vector<Grid> grids(const ParallelOptions& options) {
  return options.stages.empty() ? stages_from_flags(with_defaults(options))
                                : parse_stages(options.stages);
}

/// Returns the ranks of each stage, such as 4 + 1, or 4 + 19 x 1 where there are many.
std::string arithmetic(const std::vector<Grid>& stages) {
  constexpr size_t kMany = 9;
  std::vector<std::string> terms;
  for (auto stage = stages.begin(), next = stage; stage != stages.end(); stage = next) {
    const int ranks = stage->size();
    ++next;
    if (stages.size() > kMany)
      next = std::find_if(next, stages.end(), [&](const Grid& g) { return g.size() != ranks; });
    const auto alike = next - stage;
    terms.push_back(alike == 1 ? std::to_string(ranks) : fmt::format("{} x {}", alike, ranks));
  }
  return fmt::format("{}", fmt::join(terms, " + "));
}

}  // namespace

ParallelOptions with_defaults(ParallelOptions options) {
  if (options.parallelism.empty()) return options;
  const auto kind = kKinds.find(options.parallelism);
  validate(kind != kKinds.end(),
           "unknown parallelism '{}'; use layer, spatial, gems or gems-spatial",
           options.parallelism);
  const auto [tiles, both_ways] = kind->second;
  validate(options.stages.empty(), "the list of stages {} and parallelism {} exclude each other",
           options.stages, options.parallelism);
  validate(both_ways || !options.gems,
           "GEMS is about two directions, but parallelism {} has one; the benchmarks in "
           "benchmarks/{} have two",
           options.parallelism,
           tiles ? "gems_master_with_spatial_parallelism" : "gems_master_model");
  validate(tiles || options.spatial_size <= 1,
           "spatial size {} is about tiles, but parallelism {} has none; the benchmarks in "
           "benchmarks/spatial_parallelism have them",
           options.spatial_size, options.parallelism);
  validate(!tiles || options.spatial_size != 0,
           "spatial size 0 leaves parallelism {} without tiles; the benchmarks in "
           "benchmarks/layer_parallelism have none",
           options.parallelism);
  if (options.split_size == 0) options.split_size = kSplits;
  if (!tiles) options.spatial_size = 0;
  if (options.spatial_size < 0) options.spatial_size = 1;
  options.gems = both_ways;
  return options;
}

bool Layout::has_tiles() const {
  return std::ranges::any_of(stages_, [](const Grid& grid) { return grid.rows * grid.cols > 1; });
}

Layout::Layout(const ParallelOptions& options, int ranks)
    : Layout(ranks, grids(options), with_defaults(options).gems,
             adds_a_stage(options) ? "; or use split size 1 to keep all layers on "
                                     "the tiles"
                                   : "") {}

Layout::Layout(int ranks, std::vector<Grid> stages, bool gems, const std::string& way_out)
    : stages_(std::move(stages)), directions_(gems ? 2 : 1) {
  for (const Grid& grid : stages_) {
    first_position_.push_back(group_size_);
    group_size_ += grid.size();
  }
  validate(
      ranks % group_size_ == 0,
      "{} stage{} of {} rank{} need{} a multiple of {} ranks, not {}; start with mpirun -np {}{}",
      stages_.size(), stages_.size() == 1 ? "" : "s", arithmetic(stages_),
      group_size_ == 1 ? "" : "s", stages_.size() == 1 ? "s" : "", group_size_, ranks,
      group_size_ * std::max(1, ranks / group_size_), way_out);
  replicas_ = ranks / group_size_;
}

std::vector<Role> Layout::roles(int rank) const {
  std::vector<Role> roles;
  for (int direction = 0; direction < directions_; ++direction) {
    const int local = rank % group_size_;
    const int position = direction == 0 ? local : group_size_ - 1 - local;
    int stage = static_cast<int>(stages_.size()) - 1;
    while (first_position_[stage] > position) --stage;
    roles.push_back({rank / group_size_, direction, stage, position - first_position_[stage]});
  }
  return roles;
}

int Layout::rank(const Role& role) const {
  const int position = first_position_[role.stage] + role.tile;
  const int local = role.direction == 0 ? position : group_size_ - 1 - position;
  return role.replica * group_size_ + local;
}

std::vector<int> Layout::stage_ranks(int replica, int direction, int stage) const {
  std::vector<int> ranks;
  for (int tile = 0; tile < stages_[stage].size(); ++tile)
    ranks.push_back(rank({replica, direction, stage, tile}));
  return ranks;
}

}  // namespace mpi4dl
