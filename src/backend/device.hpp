#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace mpi4dl {

/// Counts the devices of a type that this process sees; none where libtorch was built without them.
int64_t device_count(at::DeviceType type);

/// Chooses the device of a rank: "cpu", a type such as "cuda", of whose devices the rank takes one
/// by its place on the node, a device such as "cuda:1", or "auto": an accelerator if there is one.
/// Throws UsageError.
at::Device choose_device(const std::string& wanted, int local_rank);

/// Makes it the device that this process computes on.
void use_device(at::Device device);

/// Says how exactly a device computes.
struct DeviceArithmetic {
  bool tf32 = false;           ///< products of float32 with the 10 bits of TensorFloat32
  bool deterministic = false;  ///< the same bits in every run
};
void set_arithmetic(const DeviceArithmetic& arithmetic);
/// Returns whether products of float32 are those of TensorFloat32.
bool multiplies_tf32();

}  // namespace mpi4dl
