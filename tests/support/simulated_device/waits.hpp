#pragma once

#include <ATen/core/Tensor.h>

#include "support/simulated_device/clock.hpp"

// What the host waits for, and what happens to its memory meanwhile.

namespace mpi4dl::simulated {

/// The host waits, whether it needed to or not. Throws Refused.
void host_waits_for(const Clock& clock);

/// The host has asked, and was told that all of this is over. Throws Refused.
void host_was_told(const Clock& clock);

/// A non-blocking copy to the host began at this moment: the target is NaN until the host knows the
/// moment, and has these values then.
void arrive_later(const Moment& when, const at::Tensor& target, const at::Tensor& values);

/// A non-blocking copy from the host began at this moment: the source must not change before the
/// host knows the moment.
void leave_later(const Moment& when, const at::Tensor& source);

}  // namespace mpi4dl::simulated
