#include "support/simulated_device/settings.hpp"

#include <c10/util/Exception.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/simulated_device/addresses.hpp"

namespace mpi4dl::simulated {
namespace {

constexpr int64_t kMostDevices = 16;

// Asked for where nothing may be thrown, and before main() could catch it.
[[noreturn]] void refuse(const char* name, const char* given, const char* expected) {
  std::fprintf(stderr, "mpi4dl: %s=%s: expected %s\n", name, given, expected);
  std::_Exit(2);
}

int64_t number(const char* name, int64_t otherwise, int64_t least, int64_t most,
               const char* expected) {
  const char* given = std::getenv(name);
  if (given == nullptr) return otherwise;
  const char* end = given + std::strlen(given);
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(given, end, value);
  if (error != std::errc{} || rest != end || value < least || value > most)
    refuse(name, given, expected);
  return value;
}

bool choice(const char* name, const char* yes, const char* expected) {
  const char* given = std::getenv(name);
  if (given == nullptr) return false;
  if (std::strcmp(given, yes) != 0) refuse(name, given, expected);
  return true;
}

}  // namespace

const Settings& settings() {
  static const Settings settings{
      .devices = static_cast<int>(number("MPI4DL_SIMULATED_DEVICES", 2, 0, kMostDevices,
                                         "a number of devices from 0 to 16")),
      .memory = number("MPI4DL_SIMULATED_MEMORY", kBytesOfDevice, 1, kBytesOfDevice,
                       "a number of bytes from 1 to 64 GiB"),
      .pinned = number("MPI4DL_SIMULATED_PINNED", kBytesOfDevice, 1, kBytesOfDevice,
                       "a number of bytes from 1 to 64 GiB"),
      .aware = choice("MPI4DL_SIMULATED_MPI", "aware", "aware, or nothing"),
      .report = choice("MPI4DL_SIMULATED_REPORT", "1", "1, or nothing"),
  };
  return settings;
}

void expect_device(int number) {
  TORCH_CHECK(number < settings().devices, "there is no simulated device ", number, ": there are ",
              settings().devices);
}

}  // namespace mpi4dl::simulated
