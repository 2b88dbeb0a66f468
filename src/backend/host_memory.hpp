#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "backend/side_stream.hpp"

namespace mpi4dl {

/// Makes a tensor in host memory that a device copies to and from without the host: pinned memory,
/// where the device has such, which libtorch keeps and gives out again.
at::Tensor empty_on_host(at::IntArrayRef shape, c10::ScalarType type, at::Device device);

/// HostCopy is a tensor's values on their way into host memory, with the strides of a dense tensor.
/// Of a host tensor it is that tensor itself.
class HostCopy {
 public:
  explicit HostCopy(const at::Tensor& tensor);
  /// Returns true once the values are there; never blocks.
  bool ready() const { return !event_ || event_->reached(); }
  /// They may be read once it is ready.
  const at::Tensor& values() const { return values_; }

 private:
  at::Tensor values_;
  std::unique_ptr<DeviceEvent> event_;
};

/// Copies values that are in such memory to where the other tensor is, without waiting for its
/// device.
void copy_from_host(const at::Tensor& to, const at::Tensor& values);

/// Returns values of any host memory on the device without waiting for it: by way of pinned memory,
/// because a device is waited for if it reads any other.
at::Tensor copy_to_device(const at::Tensor& values, at::Device device);

}  // namespace mpi4dl
