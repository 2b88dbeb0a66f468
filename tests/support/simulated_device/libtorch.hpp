#pragma once

#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Optional.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <ATen/detail/PrivateUse1HooksInterface.h>
#else
#include <ATen/detail/CUDAHooksInterface.h>
#endif

#include <cstddef>
#include <memory>

// What a device sees of the differences between libtorch 1.13 and 2.x, in one place.

namespace mpi4dl::simulated {

#if TORCH_VERSION_MAJOR >= 2
template <class T>
using Optional = std::optional<T>;
#else
template <class T>
using Optional = c10::optional<T>;
#endif

/// Allocates for tensors: take() is allocate(), which is const in 1.13 and not in 2.x, where an
/// allocator also copies.
class DeviceAllocator : public c10::Allocator {
 public:
  virtual c10::DataPtr take(size_t bytes) const = 0;
  virtual void copy_bytes(void* target, const void* source, size_t bytes) const = 0;
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(size_t bytes) override { return take(bytes); }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    copy_bytes(target, source, bytes);
  }
#else
  c10::DataPtr allocate(size_t bytes) const override { return take(bytes); }
#endif
};

/// Has in every version the waits that 2.x has.
struct GuardInterface : c10::impl::DeviceGuardImplInterface {
#if TORCH_VERSION_MAJOR < 2
  virtual void synchronizeEvent(void* event) const = 0;
  virtual void synchronizeDevice(c10::DeviceIndex device) const = 0;
#endif
};

/// Returns whether fresh memory is filled by a kernel, as libtorch's other devices do from 2.2 on
/// where algorithms are to be deterministic, unless they are told not to. Before 2.2 this one does
/// so too: what is right for both is right for all.
inline bool fills_fresh_memory() {
  const at::Context& context = at::globalContext();
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
  if (!context.deterministicFillUninitializedMemory()) return false;
#endif
  return context.deterministicAlgorithms();
}

c10::Allocator& pinned_allocator();

/// Makes autograd order its work on the streams of this device, which 1.13 does for CUDA alone, and
/// libtorch take pinned memory from here, for which 1.13 asks CUDA, whether there is one or not.
#if TORCH_VERSION_MAJOR >= 2
inline void become_the_accelerator() {
  struct Hooks final : at::PrivateUse1HooksInterface {
    bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
    c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  };
  c10::register_privateuse1_backend("simulated");
  at::RegisterPrivateUse1HooksInterface(new Hooks);  // NOLINT: kept for ever
}
#else
inline void become_the_accelerator() {
  struct Hooks final : at::CUDAHooksInterface {
    c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  };
  at::CUDAHooksRegistry()->Register(
      "CUDAHooks", [](at::CUDAHooksArgs /*none*/) -> std::unique_ptr<at::CUDAHooksInterface> {
        return std::make_unique<Hooks>();
      });
}
#endif

}  // namespace mpi4dl::simulated
