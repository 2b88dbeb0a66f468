#pragma once

#include <c10/core/Allocator.h>
#include <torch/version.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mpi4dl {

// What differs between libtorch 1.13 and 2.x, in one place.

/// Libtorch counts bytes in this type when it reports memory.
using ReportedBytes = std::conditional_t<(TORCH_VERSION_MAJOR >= 2), size_t, int64_t>;

/// Allocates for tensors: take() is allocate(), which is const in 1.13 and not in 2.x.
class TorchAllocator : public c10::Allocator {
 public:
  virtual c10::DataPtr take(size_t bytes) const = 0;
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(size_t bytes) override { return take(bytes); }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
#else
  c10::DataPtr allocate(size_t bytes) const override { return take(bytes); }
#endif
};

}  // namespace mpi4dl
