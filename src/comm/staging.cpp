#include "comm/staging.hpp"

#include <ATen/ATen.h>

#include "backend/backend.hpp"
#include "backend/host_memory.hpp"
#include "comm/waiting.hpp"

namespace mpi4dl {

at::Tensor staged(const at::Tensor& tensor, const CommContext& context) {
  if (tensor.is_cpu())
    return tensor.is_non_overlapping_and_dense() ? tensor.clone() : tensor.contiguous();
  const HostCopy copy(tensor);
  wait_until([&] { return copy.ready(); }, context,
             [&] {
               return WaitReason{"copy to the host", static_cast<int64_t>(tensor.nbytes()),
                                 WaitReason::kOwnDevice, nullptr};
             });
  return copy.values();
}

at::Tensor in_host_memory(const at::Tensor& tensor, const CommContext& context) {
  return tensor.is_cpu() ? tensor : staged(tensor, context);
}

void bring_back(const at::Tensor& values, const at::Tensor& tensor) {
  if (!tensor.is_cpu()) copy_from_host(tensor, values);
}

void await_device(const CommContext& context) {
  if (context.backend->on_host()) return;
  const DeviceEvent done(context.backend->device());
  wait_until([&] { return done.reached(); }, context,
             [] { return WaitReason{"computation", 0, WaitReason::kOwnDevice, nullptr}; });
}

}  // namespace mpi4dl
