#include "layout/layout.hpp"

#include <fmt/ranges.h>

#include <regex>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// "2x2", "4" (tiles, most square), "b:2" (batch parts) or "b:2x1x2" (both).
Grid parse_stage(const std::string& text) {
  static const std::regex form(
      "(?:b:([1-9][0-9]{0,5})(?:x([1-9][0-9]{0,5})x([1-9][0-9]{0,5}))?)|"
      "([1-9][0-9]{0,5})(?:x([1-9][0-9]{0,5}))?");
  std::smatch match;
  validate(std::regex_match(text, match, form),
           "'{}' in --stages is not a stage; use rows x columns such as 2x2, a number of tiles, "
           "or b:2 for batch parts",
           text);
  const auto number = [&](int group) { return match[group].matched ? std::stoi(match[group]) : 1; };
  if (match[1].matched) return {number(1), number(2), number(3)};
  if (match[5].matched) return {1, number(4), number(5)};
  return slice("square", number(4));
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
  if (options.spatial_parts.empty()) return 4;
  return options.spatial_parts.size() == 1 ? options.spatial_parts[0]
                                           : options.spatial_parts[stage];
}

std::vector<Grid> stages_from_flags(const ParallelOptions& options) {
  const int spatial = number_of_spatial_stages(options);
  const int splits = options.split_size > 0 ? options.split_size : std::max(1, spatial + 1);
  validate(spatial <= splits, "--spatial-size {} is more than --split-size {}; use at most {}",
           spatial, splits, splits);
  validate(
      options.spatial_parts.size() <= 1 ||
          static_cast<int>(options.spatial_parts.size()) == spatial,
      "--num-spatial-parts {} names {} stages, but --spatial-size is {}; give one number or {}",
      fmt::join(options.spatial_parts, ","), options.spatial_parts.size(), spatial, spatial);
  std::vector<Grid> stages;
  for (int stage = 0; stage < splits; ++stage) {
    if (stage < spatial) {
      stages.push_back(slice(options.slice_method, tiles_of(options, stage)));
    } else {
      stages.push_back({.batch = options.local_dp});
    }
  }
  return stages;
}

std::string arithmetic(const std::vector<Grid>& stages) {
  std::vector<int> sizes;
  for (const Grid& grid : stages) sizes.push_back(grid.size());
  return fmt::format("{}", fmt::join(sizes, " + "));
}

}  // namespace

Layout::Layout(const ParallelOptions& options, int ranks)
    : Layout(ranks,
             options.stages.empty() ? stages_from_flags(options) : parse_stages(options.stages),
             options.gems) {}

Layout::Layout(int ranks, std::vector<Grid> stages, bool gems)
    : stages_(std::move(stages)), directions_(gems ? 2 : 1) {
  for (const Grid& grid : stages_) {
    first_position_.push_back(group_size_);
    group_size_ += grid.size();
  }
  validate(
      ranks % group_size_ == 0,
      "{} stage{} of {} rank{} need{} a multiple of {} ranks, not {}; start with mpirun -np {}",
      stages_.size(), stages_.size() == 1 ? "" : "s", arithmetic(stages_),
      group_size_ == 1 ? "" : "s", stages_.size() == 1 ? "s" : "", group_size_, ranks,
      group_size_ * std::max(1, ranks / group_size_));
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
