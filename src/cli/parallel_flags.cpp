#include "cli/parallel_flags.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/checks.hpp"
#include "plan/balance.hpp"

namespace mpi4dl {

void ParallelFlags::add_to(CLI::App& command) {
  command.option_defaults()->group("Layout");
  default_in_words(
      command.add_option("--split-size", options.split_size, "Pipeline stages of the model")
          ->check(at_least(1)),
      "1, or one more than spatial stages");
  default_in_words(command
                       .add_option("--spatial-size", options.spatial_size,
                                   "How many of the first stages cut their images into tiles")
                       ->check(at_least(0)),
                   "1 where there are spatial parts");
  command
      .add_option("--num-spatial-parts", options.spatial_parts,
                  "Tiles of each spatial stage: one number, or a list such as 4,2")
      ->delimiter(',')
      ->check(at_least(1));
  command.add_option(
      "--slice-method", options.slice_method,
      "How to cut: square, vertical (columns), horizontal (rows), or rows x columns: 2x3");
  command.add_option("--local-DP", options.local_dp, "Data-parallel ranks of each later stage")
      ->check(at_least(1));
  command.add_option("--stages", options.stages,
                     "Instead of the above, each stage's grid: 2x2,2x1,b:2,1 (b: batch parts)");
  command
      .add_option("--balance", balance, "Cells (consecutive layers) of each stage, such as 20,18")
      ->delimiter(',');
  add_halo_flags(command, halo);
}

void ParallelFlags::add_gems_to(CLI::App& command) {
  command.add_flag("--gems", options.gems,
                   "Pipeline batches in both directions over the same ranks (GEMS-MASTER)");
  command.add_option("--parallelism", options.parallelism,
                     "Run as a benchmark of MPI4DL, with its defaults: layer, spatial, gems or "
                     "gems-spatial");
}

std::vector<CellRange> ParallelFlags::cells(const Graph& graph, const Layout& layout) const {
  return balance.empty() ? balance_cells(graph, layout.stages())
                         : given_balance(graph, layout.stages(), balance);
}

void ParallelFlags::check() const {
  check_halo_flags(halo);
  validate(options.stages.empty() || (options.split_size == 0 && options.spatial_size < 0 &&
                                      options.spatial_parts.empty() && options.local_dp == 1 &&
                                      options.slice_method == "square"),
           "--stages {} already says what --split-size, --spatial-size, --num-spatial-parts, "
           "--slice-method and --local-DP say; give one or the other",
           options.stages);
  validate(!halo.fused || Layout(options, 0).has_tiles(),
           "--halo-D2 is about halos of tiles, but no stage has any; the benchmarks in "
           "benchmarks/spatial_parallelism have them");
}

void add_halo_flags(CLI::App& command, HaloDesign& halo) {
  command.add_flag(
      "--halo-D2", halo.fused,
      "One deep halo exchange for several cells, which then compute margins redundantly");
  command.add_option("--fused-layers", halo.fused_layers, "Cells per halo exchange of --halo-D2")
      ->check(at_least(1));
}

void check_halo_flags(const HaloDesign& halo) {
  validate(halo.fused || halo.fused_layers == 1, "--fused-layers {} requires --halo-D2",
           halo.fused_layers);
}

}  // namespace mpi4dl
