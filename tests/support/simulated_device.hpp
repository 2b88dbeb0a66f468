#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <stdexcept>

// An accelerator that needs none: a PrivateUse1 device of libtorch whose operators are the CPU's,
// and which is as strict as a GPU is dangerous. A program that links mpi4dl_simulated_device has
// it.
//
//   memory    Tensors hold addresses that the host may never touch: doing so is a SIGSEGV and a
//             line that says so. Fresh and freed memory is 0xFF, which is NaN in every floating
//             type.
//   order     Streams and events have vector clocks. An access (operator, copy, MPI call, free)
//             that is not ordered after the last conflicting one is Refused, by a sentence that
//             names both, whether or not it would have gone well this time. A free cannot throw: it
//             is refused by what comes next. An event or a stream answers "not yet" to the first
//             question.
//   copies    What a non-blocking copy brings to the host is NaN until the host has waited. With
//             memory that is not pinned the host waits for the copy, as with CUDA.
//   MPI       Device memory is Refused. If MPI is "aware" of it, point-to-point calls take it, once
//             the host has waited for what the streams do with it.
//
// Users know libtorch's device-generic interface alone: c10::Event, c10::Stream, VirtualGuardImpl.
// One host thread at a time is expected to drive the devices: what the host has waited for holds
// for all threads, and with libtorch 1.13 what is the current stream, too.
//
// From the environment:
//   MPI4DL_SIMULATED_DEVICES=2     devices there are
//   MPI4DL_SIMULATED_MEMORY=...    bytes that each has, 64 GiB otherwise
//   MPI4DL_SIMULATED_PINNED=...    bytes of the host that can be pinned, 64 GiB otherwise
//   MPI4DL_SIMULATED_MPI=aware     MPI reads and writes device memory
//   MPI4DL_SIMULATED_REPORT=1      the counters are printed at exit

namespace mpi4dl::simulated {

/// Returns the device with this number.
c10::Device device(int index = 0);

/// Returns whether MPI is simulated to be one that reads and writes device memory.
bool mpi_is_aware();

/// Returns the current device when MPI was started: an MPI that is aware takes memory on it.
c10::Device where_mpi_started();

/// Says which two accesses to the memory of a device are not ordered, or what MPI cannot take.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Counts what this process has had its devices do, all of them together.
struct Counters {
  int64_t operators = 0;   ///< kernels that a device would have run, copies on it among them
  int64_t copies_in = 0;   ///< from the host
  int64_t copies_out = 0;  ///< to the host, with every value that was asked for
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;
  int64_t host_waits = 0;  ///< times that the host waited: copies, values, synchronisations, polls
  int64_t pinned_bytes = 0;  ///< of the host that were pinned, and not only given out again
  int64_t bytes_on = 0;      ///< copied from one tensor on a device to another
  int64_t gaps = 0;          ///< in tensors given to convolutions, which cuDNN would copy before
  int64_t live_bytes = 0;    ///< of tensors, and of memory that streams still use
  int64_t peak_bytes = 0;
};

Counters counters();

/// Begins to count anew; the peak begins at what is live.
void reset_counters();

}  // namespace mpi4dl::simulated
