#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "comm/communicator.hpp"

namespace mpi4dl {

/// Maps samples of a data set that cannot be read to what is wrong with them.
using BadSamples = std::map<int64_t, std::string>;

/// Returns what any rank has found; where several have found something wrong with a sample, what
/// the first of them says. Collective.
BadSamples gather_bad_samples(const BadSamples& mine, const Communicator& world);

}  // namespace mpi4dl
