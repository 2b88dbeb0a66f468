#include "report/rank_table.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/units.hpp"
#include "comm/collectives.hpp"
#include "memory/caching_allocator.hpp"

namespace mpi4dl {

void print_ranks(const Session& session, const Layout& layout, const Trainer& trainer,
                 int64_t peak_bytes) {
  int64_t parameter_bytes = 0;
  for (const auto& [stage, parameters] : trainer.parameters())
    for (const auto& [name, values] : parameters->trained())
      parameter_bytes += static_cast<int64_t>(values.nbytes());
  struct Line {
    int64_t peak, parameters, held;
    int threads;
  };
  const auto lines =
      all_gather(Line{peak_bytes, parameter_bytes,
                      CachingAllocator::instance().statistics().resident, at::get_num_threads()},
                 session.world());
  if (!session.first()) return;
  fmt::print("{:>5}  {:<40} {:>8} {:>16} {:>16} {:>16}\n", "rank", "roles", "threads",
             "parameters MiB", "activations MiB", "allocator MiB");
  for (int rank = 0; rank < static_cast<int>(lines.size()); ++rank) {
    std::string roles;
    for (const Role& role : layout.roles(rank))
      roles += fmt::format("{}replica {} stage {} tile {}", roles.empty() ? "" : ", back ",
                           role.replica, role.stage, role.tile);
    fmt::print("{:>5}  {:<40} {:>8} {:>16.1f} {:>16.1f} {:>16.1f}\n", rank, roles,
               lines[rank].threads, mebibytes(lines[rank].parameters), mebibytes(lines[rank].peak),
               mebibytes(lines[rank].held));
  }
}

}  // namespace mpi4dl
