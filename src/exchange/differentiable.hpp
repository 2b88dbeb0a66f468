#pragma once

#include <memory>

#include "exchange/redistribution.hpp"

namespace mpi4dl {

/// Redistribution as an autograd operator: `values` are this rank's owned box, the result is its
/// `needed` box with zeros where nobody owns. Its gradient is the adjoint. Collective, also in
/// backward: all ranks must differentiate their redistributions in the same order.
at::Tensor redistribute(const at::Tensor& values, const Box& owned, const Box& needed,
                        std::shared_ptr<const Redistribution> plan);

}  // namespace mpi4dl
