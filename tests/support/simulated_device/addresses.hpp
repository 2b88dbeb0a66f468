#pragma once

#include <cstddef>
#include <cstdint>

// Two ranges of addresses of the same size. Tensors hold addresses of the first, which nobody may
// ever read or write; their bytes lie in the second, always as far away, which only the simulator
// knows:
//
//   |  device 0  |  device 1  | ...   |  device 0  |  device 1  | ...
//   '---- what tensors hold --'       '---- where bytes are ----'
//
// No page changes its protection, so the host is caught even while another thread runs an operator.

namespace mpi4dl::simulated {

using Address = uintptr_t;

inline constexpr int64_t kBytesOfDevice = int64_t{64} << 30;

/// Returns where the memory of a device begins. Reserves the ranges when first called.
Address first_address(int device);

/// Returns whether a tensor of a simulated device could hold this address.
bool is_device_address(const void* address);

/// Returns the number of the device whose memory this is.
int device_of(const void* address);

/// Returns where the bytes of a device address are.
std::byte* bytes_behind(const void* address);

/// Makes a signal handler name the fault of a host that touches device memory, before the process
/// dies of it. Whoever installs another handler later should be followed by another call.
void name_host_accesses();

}  // namespace mpi4dl::simulated
