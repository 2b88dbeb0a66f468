#pragma once

#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <cstddef>
#include <cstdint>
#include <string>
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

/// Is given the sentences that libtorch warns with.
class WarningHandler : public c10::WarningHandler {
#if TORCH_VERSION_MAJOR >= 2
  void process(const c10::Warning& warning) final { warn(warning.msg()); }
#else
  void process(const c10::SourceLocation& /*where*/, const std::string& sentence,
               bool /*verbatim*/) final {
    warn(sentence);
  }
#endif
  virtual void warn(const std::string& sentence) = 0;
};

/// Gives that handler what libtorch warns of in this thread.
inline void set_warning_handler(WarningHandler& handler) {
#if TORCH_VERSION_MAJOR >= 2
  c10::WarningUtils::set_warning_handler(&handler);
#else
  c10::Warning::set_warning_handler(&handler);
#endif
}

/// From 2.2 on, where algorithms are to be deterministic, a kernel fills all fresh memory of a
/// device. That costs time, and nobody reads what it writes, so it is left out.
inline void leave_fresh_memory_alone([[maybe_unused]] at::Context& context) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
  context.setDeterministicFillUninitializedMemory(false);
#endif
}

}  // namespace mpi4dl
