#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <vector>

#include "support/simulated_device/order.hpp"

namespace mpi4dl::simulated {

/// Returns the bytes that a device tensor with elements occupies, and how they are accessed.
Touch touch(const at::Tensor& tensor, Access access);
/// Returns all bytes of a storage.
Touch touch(const c10::Storage& storage, Access access);

/// Gives a storage more bytes; what is new of them is NaN.
void grow(const c10::Storage& storage, int64_t bytes);

/// Shows tensors of one device to operators of the CPU, for one call: CPU tensors on the same
/// bytes, and back. What was the same tensor or storage remains the same.
class HostViews {
 public:
  HostViews() = default;
  ~HostViews();
  HostViews(const HostViews&) = delete;
  HostViews& operator=(const HostViews&) = delete;

  /// Returns the CPU tensor on the bytes of a device tensor.
  at::Tensor of(const at::Tensor& tensor);

  /// Returns the device tensor for what an operator returned: one of the tensors that it was given,
  /// a view of their memory, or memory of its own, filled with the same bytes.
  at::Tensor back(const at::Tensor& result, c10::Device device);

  /// Gives device tensors the shapes, and the memory, that their CPU tensors were given in place;
  /// to be called before back(). Returns those that changed.
  std::vector<at::Tensor> follow();

  /// Returns the storages that back() has made.
  const std::vector<c10::Storage>& made() const { return made_; }

 private:
  struct Tensors {
    at::Tensor on_device, on_host;
  };
  struct Storages {
    c10::Storage on_device, on_host;
  };

  c10::Storage host_storage(const c10::Storage& on_device);
  c10::Storage device_storage(const c10::Storage& on_host, c10::Device device);

  std::vector<Tensors> tensors_;
  std::vector<Storages> storages_;
  std::vector<c10::Storage> made_;
};

}  // namespace mpi4dl::simulated
