#include "base/error.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {

template <>
TileResult run_tile(const Input& /*op*/, const TileRun& /*run*/) {
  throw Error("an input is given, not computed");
}

}  // namespace mpi4dl
