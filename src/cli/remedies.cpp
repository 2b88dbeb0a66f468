#include "cli/remedies.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Alters flags and says what that costs.
using Change = std::function<std::string(TrainingFlags&)>;

std::string use_1f1b(TrainingFlags& flags) {
  flags.schedule = "1f1b";
  return "as fast as gpipe";
}

std::string switch_halo_design(TrainingFlags& flags) {
  HaloDesign& halo = flags.parallel.halo;
  halo = {.fused = !halo.fused};
  return halo.fused ? "margins are computed redundantly" : "a halo exchange before every layer";
}

std::string recompute(TrainingFlags& flags) {
  flags.trainer.stage.recompute = true;
  return "about a third more work";
}

std::string halve_precision(TrainingFlags& flags) {
  flags.dtype = "bfloat16";
  return "8 bits of mantissa instead of 24";
}

Change use_parts(int parts) {
  return [parts](TrainingFlags& flags) {
    flags.parts = parts;
    if (flags.schedule == "gpipe") use_1f1b(flags);
    const int64_t images = (flags.batch + parts - 1) / parts;
    return fmt::format("micro-batches of {} image{}, over which batch norm takes its statistics",
                       images, images == 1 ? "" : "s");
  };
}

/// Doubles both sides of "2x3", which gives "4x6"; square and strips stay what they are.
std::string finer_slices(const std::string& method) {
  const size_t by = method.find('x');
  if (by == std::string::npos) return method;
  return fmt::format("{}x{}", 2 * std::stoi(method), 2 * std::stoi(method.substr(by + 1)));
}

bool tiled(const Grid& grid) {
  return grid.rows * grid.cols > 1;
}

std::string finer_stages(std::vector<Grid> stages) {
  const bool none = std::ranges::none_of(stages, tiled);
  for (size_t i = 0; i < stages.size(); ++i)
    if (none ? i == 0 : tiled(stages[i])) stages[i].rows *= 2, stages[i].cols *= 2;
  std::vector<std::string> texts;
  for (const Grid& grid : stages) {
    const std::string tiles = fmt::format("{}x{}", grid.rows, grid.cols);
    texts.push_back(grid.batch > 1 ? fmt::format("b:{}x{}", grid.batch, tiles) : tiles);
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

/// Doubles the tiles along each side that is cut.
void use_finer_tiles(TrainingFlags& flags) {
  ParallelOptions& options = flags.parallel.options;
  if (!options.stages.empty()) {
    options.stages = finer_stages(Layout(options, 0).stages());
    return;
  }
  if (options.spatial_size == 0) options.spatial_size = 1;
  if (options.spatial_parts.empty()) options.spatial_parts = {1};
  const bool strips = options.slice_method == "vertical" || options.slice_method == "horizontal";
  for (int& parts : options.spatial_parts) parts *= strips ? 2 : 4;
  options.slice_method = finer_slices(options.slice_method);
}

/// Leaves no rank behind the tiles, whose memory more tiles would not lower.
std::string keep_on_tiles(TrainingFlags& flags) {
  flags.parallel.options.split_size = 1;
  return "all layers on the tiles";
}

/// Returns the flags that turn one run into another.
std::string difference(const TrainingFlags& from, const TrainingFlags& to) {
  std::vector<std::string> flags;
  const ParallelOptions &before = from.parallel.options, &after = to.parallel.options;
  if (before.stages != after.stages) flags.push_back("--stages " + after.stages);
  if (before.spatial_size != after.spatial_size)
    flags.push_back(fmt::format("--spatial-size {}", after.spatial_size));
  if (before.spatial_parts != after.spatial_parts)
    flags.push_back(fmt::format("--num-spatial-parts {}", fmt::join(after.spatial_parts, ",")));
  if (before.slice_method != after.slice_method)
    flags.push_back("--slice-method " + after.slice_method);
  if (before.split_size != after.split_size)
    flags.push_back(fmt::format("--split-size {}", after.split_size));
  if (from.parallel.halo.fused != to.parallel.halo.fused)
    flags.push_back(to.parallel.halo.fused ? "--halo-D2" : "no --halo-D2");
  if (!from.trainer.stage.recompute && to.trainer.stage.recompute) flags.push_back("--recompute");
  if (from.parts != to.parts) flags.push_back(fmt::format("--parts {}", to.parts));
  if (from.schedule != to.schedule) flags.push_back("--schedule " + to.schedule);
  if (from.dtype != to.dtype) flags.push_back("--dtype " + to.dtype);
  return fmt::format("{}", fmt::join(flags, " "));
}

/// Alters flags and says what all changes cost.
std::string apply(const std::vector<Change>& changes, TrainingFlags& flags) {
  std::vector<std::string> prices;
  for (const Change& change : changes) prices.push_back(change(flags));
  return fmt::format("{}", fmt::join(prices, ", "));
}

class Search {
 public:
  Search(const Graph& graph, const TrainingFlags& given, int workers, const PlannedPlace& place,
         int64_t limit)
      : graph_(graph), given_(given), workers_(workers), place_(place), limit_(limit) {}

  Remedies run() {
    if (given_.schedule == "gpipe" && given_.parts > 1) try_changes({use_1f1b});
    const bool tiles = Layout(given_.parallel.options, 0).has_tiles();
    if (tiles) try_changes({switch_halo_design});
    if (tiles && splits()) try_changes({keep_on_tiles});
    if (!recomputes()) try_changes({recompute});
    try_parts({});
    if (given_.dtype != "bfloat16") try_changes({halve_precision});
    if (found_.fitting.empty()) try_together();
    try_more_tiles();
    return std::move(found_);
  }

 private:
  bool recomputes() const { return given_.trainer.stage.recompute; }
  /// Returns whether flags put layers behind the tiles, or would if there were tiles.
  bool splits() const {
    const ParallelOptions& options = given_.parallel.options;
    return options.stages.empty() && options.split_size != 1;
  }

  /// Returns whether these changes together keep the limit.
  bool try_changes(const std::vector<Change>& changes) {
    TrainingFlags flags = given_;
    const std::string price = apply(changes, flags);
    return try_flags(flags, price);
  }

  bool try_flags(const TrainingFlags& flags, const std::string& price) {
    const std::optional<Remedy> remedy = plan(flags, price);
    if (!remedy) return false;
    if (found_.least.bytes == 0 || remedy->bytes < found_.least.bytes) found_.least = *remedy;
    if (remedy->bytes > limit_) return false;
    found_.fitting.push_back(*remedy);
    return true;
  }

  /// Returns none where the flags do not fit each other: some layer is smaller than the tiles, or
  /// a batch smaller than its parts.
  std::optional<Remedy> plan(const TrainingFlags& flags, const std::string& price) const {
    try {
      const PlannedRun run = plan_run(graph_, flags, 0, workers_, place_);
      return Remedy{difference(given_, flags), price, run.most(), run.layout.group_size()};
    } catch (const UsageError&) {
      return std::nullopt;
    }
  }

  /// Looks for the fewest micro-batches that are enough, together with these changes.
  bool try_parts(const std::vector<Change>& others) {
    for (int64_t parts = 2 * given_.parts; parts < 2 * given_.batch; parts *= 2) {
      std::vector<Change> changes = others;
      changes.push_back(use_parts(static_cast<int>(std::min(parts, given_.batch))));
      if (try_changes(changes)) return true;
    }
    return false;
  }

  void try_together() {
    std::vector<Change> changes;
    if (!recomputes()) changes.push_back(recompute);
    if (try_parts(changes)) return;
    if (given_.dtype == "bfloat16") return;
    changes.push_back(halve_precision);
    if (!try_changes(changes)) try_parts(changes);
  }

  void try_more_tiles() {
    if (try_tiles({}) || (splits() && try_tiles({keep_on_tiles})) || recomputes()) return;
    if (!try_tiles({recompute}) && splits()) try_tiles({recompute, keep_on_tiles});
  }

  /// Tries more and more tiles, together with these changes.
  bool try_tiles(const std::vector<Change>& others) {
    TrainingFlags flags = given_;
    const std::string price = apply(others, flags);
    for (use_finer_tiles(flags); takes_tiles(flags); use_finer_tiles(flags))
      if (try_flags(flags, price)) return true;
    return false;
  }

  /// Returns false where the tiles are too many or do not fit the other flags.
  static bool takes_tiles(const TrainingFlags& flags) try {
    const Layout layout(flags.parallel.options, 0);
    return layout.has_tiles() && layout.group_size() <= kMostRanks;
  } catch (const UsageError&) {
    return false;
  }

  static constexpr int kMostRanks = 5000;
  const Graph& graph_;
  const TrainingFlags& given_;
  int workers_;
  PlannedPlace place_;
  int64_t limit_;
  Remedies found_;
};

}  // namespace

Remedies find_remedies(const Graph& graph, const TrainingFlags& given, int workers,
                       const PlannedPlace& place, int64_t limit) {
  return Search(graph, given, workers, place, limit).run();
}

}  // namespace mpi4dl
