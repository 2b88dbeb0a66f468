#include "backend/device.hpp"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <cstdlib>

#include "base/error.hpp"
#include "memory/libtorch_version.hpp"

namespace mpi4dl {
namespace {

// PrivateUse1 is libtorch's name for a device of somebody else's.
constexpr std::array kAccelerators{at::DeviceType::CUDA, at::DeviceType::PrivateUse1};

at::Device parse(const std::string& wanted) {
  try {
    return at::Device(wanted);
  } catch (const c10::Error&) {
    throw UsageError(
        fmt::format("'{}' is no device; there are auto, cpu, cuda, and cuda:0 and so on", wanted));
  }
}

}  // namespace

int64_t device_count(at::DeviceType type) {
  return c10::impl::hasDeviceGuardImpl(type) ? c10::impl::VirtualGuardImpl(type).deviceCount() : 0;
}

at::Device choose_device(const std::string& wanted, int local_rank) {
  if (wanted == "auto") {
    for (const at::DeviceType type : kAccelerators)
      if (const int64_t count = device_count(type); count > 0)
        return {type, static_cast<at::DeviceIndex>(local_rank % count)};
    return at::kCPU;
  }
  const at::Device device = parse(wanted);
  if (device.is_cpu()) return at::kCPU;
  const std::string type = at::DeviceTypeName(device.type(), /*lower_case=*/true);
  validate(
      c10::impl::hasDeviceGuardImpl(device.type()),
      "there is no device {}: this libtorch was built without it; see docs/gpu.md for one that "
      "has it",
      wanted);
  const int64_t count = device_count(device.type());
  validate(count > 0, "there is no device {} on this node; compute with cpu", wanted);
  validate(!device.has_index() || device.index() < count,
           "there is no device {}: this node has {} "
           "of its type, {}:0 to {}:{}",
           wanted, count, type, type, count - 1);
  return device.has_index()
             ? device
             : at::Device(device.type(), static_cast<at::DeviceIndex>(local_rank % count));
}

void use_device(at::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

void set_arithmetic(const DeviceArithmetic& arithmetic) {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuDNN(arithmetic.tf32);
  context.setAllowTF32CuBLAS(arithmetic.tf32);
  context.setDeterministicCuDNN(arithmetic.deterministic);
  context.setDeterministicAlgorithms(arithmetic.deterministic, /*warn_only=*/true);
  context.setBenchmarkCuDNN(false);
  leave_fresh_memory_alone(context);
  // cuBLAS reads it when it is used first.
  if (arithmetic.deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

bool multiplies_tf32() {
  return at::globalContext().allowTF32CuDNN();
}

}  // namespace mpi4dl
