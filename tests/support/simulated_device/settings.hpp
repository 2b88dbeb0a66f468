#pragma once

#include <cstdint>

namespace mpi4dl::simulated {

/// Holds what the environment says of the simulation; see simulated_device.hpp.
struct Settings {
  int devices = 2;
  int64_t memory = 0;  ///< bytes of each device
  int64_t pinned = 0;  ///< bytes of the host that can be pinned
  bool aware = false;
  bool report = false;
};

const Settings& settings();

/// Throws c10::Error unless there is a device with this number.
void expect_device(int number);

}  // namespace mpi4dl::simulated
