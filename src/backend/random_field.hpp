#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>

#include "geometry/box.hpp"

namespace mpi4dl {

/// Returns a float64 tensor over a box, each element `map(u)` of a random u in [0, 1) that depends
/// only on the key and on the element's position in the whole tensor. Cut it as you like: the
/// pieces fit.
at::Tensor random_field(const Box& box, std::span<const int64_t> whole, uint64_t key,
                        const std::function<double(double)>& map);

}  // namespace mpi4dl
