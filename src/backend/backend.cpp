#include "backend/backend.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "backend/composed/composed_backend.hpp"
#include "backend/cpu/cpu_backend.hpp"
#include "backend/host_memory.hpp"
#include "base/error.hpp"

namespace mpi4dl {

AdamFactors::AdamFactors(const AdamStep& step)
    : rate(step.learning_rate / (1 - std::pow(beta1, static_cast<double>(step.count)))),
      spread(1 / std::sqrt(1 - std::pow(beta2, static_cast<double>(step.count)))),
      decay(step.decoupled ? 0 : step.weight_decay),
      shrink(step.decoupled ? 1 - step.learning_rate * step.weight_decay : 1) {}

Backend::Backend(at::Device device) : device_(device) {
  if (!device.is_cpu()) side_stream_ = std::make_unique<SideStream>(device);
}

at::Tensor Backend::from_host(const at::Tensor& values) const {
  return on_host() ? values : copy_to_device(values, device_);
}

Patch Backend::empty(const Box& box, c10::ScalarType type) const {
  return {box, at::empty(box.shape(), options(type).memory_format(memory_format(box)))};
}

std::shared_ptr<const Backend> make_backend(const std::string& name, at::Device device) {
  if (name == "composed" || (name == "auto" && !device.is_cpu()))
    return std::make_shared<ComposedBackend>(device);
  validate(device.is_cpu(), "the kernels of backend {} compute in host memory, not on {}", name,
           device.str());
  return std::make_shared<CpuBackend>();
}

}  // namespace mpi4dl
