#pragma once

#include <functional>

#include "execute/operation.hpp"

namespace mpi4dl {

/// Runs `function` on the input and the parameters, and leaves its gradient to libtorch's autograd:
/// for operators that are rare and cheap. Parameters that are not trained get none.
TileResult run_recorded(const TileRun& run,
                        const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function);

}  // namespace mpi4dl
