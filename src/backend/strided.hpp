#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <vector>

#include "backend/patch.hpp"
#include "geometry/box.hpp"

namespace mpi4dl {

/// Views values of a box somewhere in host memory, without a tensor's costs.
struct Strided {
  std::byte* data = nullptr;
  int axes = 0;
  c10::ScalarType type = c10::ScalarType::Float;
  std::array<int64_t, Box::kMaxAxes> shape{};
  std::array<int64_t, Box::kMaxAxes> stride{};  // in elements

  int64_t elements() const;
};

/// Views the values of `part` inside a host patch.
Strided strided(const Patch& patch, const Box& part);

/// Views the values of `box` in a packed buffer that starts at `data`: contiguous, channels last.
Strided packed(std::byte* data, const Box& box, c10::ScalarType type);

/// Returns the strides of a packed tensor over a box: contiguous, channels last.
std::vector<int64_t> packed_strides(const Box& box);

/// Returns true where the values are one piece of memory in packed order.
bool is_packed(const Strided& values);

/// Counts the bytes of a row that lie side by side.
int64_t row_bytes(const Strided& values);

/// Makes a tensor over this memory, which the caller keeps alive.
at::Tensor as_tensor(const Strided& values);

/// Copies between equal shapes and types. Rows of a halo are far apart in memory, so each is
/// fetched into the cache some rows before its turn.
void copy(const Strided& target, const Strided& source);

/// Adds the source to the target, of equal shape and type.
void add(const Strided& target, const Strided& source);

/// Writes zeros.
void clear(const Strided& target);

}  // namespace mpi4dl
