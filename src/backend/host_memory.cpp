#include "backend/host_memory.hpp"

#include <ATen/ATen.h>

#include "backend/device_errors.hpp"
#include "base/error.hpp"

namespace mpi4dl {

namespace {

/// Asks libtorch, which throws where no device has such memory.
bool can_pin() {
  static const bool can = [] {
    try {
      at::empty({1}, at::TensorOptions(at::kCPU).pinned_memory(true));
    } catch (const c10::Error&) {
      return false;
    }
    return true;
  }();
  return can;
}

/// Makes memory for the values of a dense tensor, with its strides.
at::Tensor empty_like_on_host(const at::Tensor& dense, at::Device device) {
  return empty_on_host({dense.numel()}, dense.scalar_type(), device)
      .as_strided(dense.sizes(), dense.strides());
}

at::Tensor dense(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
}

}  // namespace

at::Tensor empty_on_host(at::IntArrayRef shape, c10::ScalarType type, at::Device device) {
  const bool pinned = !device.is_cpu() && can_pin();
  try {
    return at::empty(shape, at::TensorOptions(at::kCPU).dtype(type).pinned_memory(pinned));
  } catch (const c10::Error& error) {
    ensure(
        !pinned || !is_out_of_memory(error),
        "the host has no memory left that could be pinned for device {}; use a smaller batch, or "
        "fewer ranks on this node",
        device.str());
    throw;
  }
}

HostCopy::HostCopy(const at::Tensor& tensor) : values_(tensor) {
  if (tensor.is_cpu()) return;
  const at::Tensor packed = dense(tensor);
  values_ = empty_like_on_host(packed, tensor.device());
  values_.copy_(packed, /*non_blocking=*/true);
  event_ = std::make_unique<DeviceEvent>(tensor.device());
}

void copy_from_host(const at::Tensor& to, const at::Tensor& values) {
  to.copy_(values, /*non_blocking=*/true);
}

at::Tensor copy_to_device(const at::Tensor& values, at::Device device) {
  const at::Tensor packed = dense(values);
  return empty_like_on_host(packed, device).copy_(packed).to(device, /*non_blocking=*/true);
}

}  // namespace mpi4dl
