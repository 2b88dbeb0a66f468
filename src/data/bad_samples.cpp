#include "data/bad_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "comm/agreement.hpp"

namespace mpi4dl {

BadSamples gather_bad_samples(const BadSamples& mine, const Communicator& world) {
  std::string lines;  // "17 cannot read x.png: ..."
  for (auto [sample, reason] : mine) {
    std::replace(reason.begin(), reason.end(), '\n', ' ');  // of the name of a file
    lines += fmt::format("{} {}\n", sample, reason);
  }
  BadSamples all;
  for (const std::string& theirs : gather_texts(world, lines)) {
    std::istringstream in(theirs);
    std::string reason;
    for (int64_t sample = 0; in >> sample && in.ignore() && std::getline(in, reason);)
      all.emplace(sample, reason);
  }
  return all;
}

}  // namespace mpi4dl
