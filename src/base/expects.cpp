#include "base/expects.hpp"

#include "base/error.hpp"

namespace mpi4dl {

void fail_expectation(const char* promise, const char* file, int line) {
  throw Error(fmt::format("a caller broke its promise ({}:{}): {}", file, line, promise));
}

}  // namespace mpi4dl
