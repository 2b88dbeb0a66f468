#include "geometry/routes.hpp"

namespace mpi4dl {
namespace {

/// Returns all non-empty overlaps, in the same order on both ends of a message: by owned, then
/// needed box.
std::vector<Box> overlaps(const std::vector<Box>& owned, const std::vector<Box>& needed) {
  std::vector<Box> parts;
  for (const Box& mine : owned)
    for (const Box& wanted : needed)
      if (Box both = intersect(mine, wanted); !both.empty()) parts.push_back(both);
  return parts;
}

}  // namespace

int64_t Route::elements() const {
  int64_t sum = 0;
  for (const Box& box : boxes) sum += box.elements();
  return sum;
}

Routes find_routes(const std::vector<std::vector<Box>>& owned,
                   const std::vector<std::vector<Box>>& needed, int rank) {
  Routes routes;
  routes.local = overlaps(owned[rank], needed[rank]);
  for (int peer = 0; peer < static_cast<int>(owned.size()); ++peer) {
    if (peer == rank) continue;
    if (auto out = overlaps(owned[rank], needed[peer]); !out.empty())
      routes.send.push_back({peer, std::move(out)});
    if (auto in = overlaps(owned[peer], needed[rank]); !in.empty())
      routes.receive.push_back({peer, std::move(in)});
  }
  return routes;
}

}  // namespace mpi4dl
