#include "train/thread_share.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/affinity.hpp"
#include "base/random.hpp"
#include "comm/collectives.hpp"

namespace mpi4dl {
namespace {

/// Says which cores a rank may use, and on which machine they are.
struct Cores {
  uint64_t machine;
  cpu_set_t mask;

  bool shared_with(const Cores& other) const {
    return machine == other.machine && overlap(mask, other.mask);
  }
};

Cores own_cores() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return {key_of(std::string_view(name.data())), allowed_cores()};
}

/// Returns the schedules of all ranks of the first replica. They travel as integers, of which 0 is
/// no action.
std::vector<Schedule> gather(const Schedule& mine, const Layout& layout,
                             const Communicator& world) {
  const auto lengths = all_gather(static_cast<int64_t>(mine.size()), world);
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  at::Tensor all = at::zeros({world.size(), longest}, at::kLong);
  auto rows = all.accessor<int64_t, 2>();
  for (size_t i = 0; i < mine.size(); ++i)
    rows[world.rank()][static_cast<int64_t>(i)] =
        1 + (mine[i].kind == Action::Kind::backward ? 1 : 0) + 2 * mine[i].direction +
        4 * static_cast<int64_t>(mine[i].batch);
  all_reduce(all, world);
  std::vector<Schedule> schedules(layout.group_size());
  for (int rank = 0; rank < layout.group_size(); ++rank)
    for (int64_t i = 0; i < lengths[rank]; ++i) {
      const int64_t code = rows[rank][i] - 1;
      schedules[rank].push_back({code % 2 == 1 ? Action::Kind::backward : Action::Kind::forward,
                                 static_cast<int>(code / 4), static_cast<int>(code / 2 % 2)});
    }
  return schedules;
}

}  // namespace

double ranks_at_once(const Simulation& simulation, int rank, const std::vector<int>& ranks) {
  double own = 0, all = 0;
  for (const auto& span : simulation.spans) {
    if (span.rank != rank) continue;
    own += span.end - span.begin;
    for (const auto& other : simulation.spans)
      all += static_cast<double>(std::count(ranks.begin(), ranks.end(), other.rank)) *
             std::max(0.0, std::min(span.end, other.end) - std::max(span.begin, other.begin));
  }
  return own > 0 ? all / own : 1;
}

int share_of_threads(const Layout& layout, const Schedule& mine,
                     const std::vector<StageCost>& costs, const Communicator& world) {
  const std::vector<Schedule> schedules = gather(mine, layout, world);
  const Cores here = own_cores();
  const auto everywhere = all_gather(here, world);
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return at::get_num_threads();
  std::vector<int> sharers;
  for (int rank = 0; rank < world.size(); ++rank)
    if (here.shared_with(everywhere[rank])) sharers.push_back(rank % layout.group_size());
  const double at_once = ranks_at_once(simulate(layout, schedules, costs),
                                       world.rank() % layout.group_size(), sharers);
  return std::max(1, static_cast<int>(std::lround(CPU_COUNT(&here.mask) / at_once)));
}

}  // namespace mpi4dl
