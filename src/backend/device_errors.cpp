#include "backend/device_errors.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace mpi4dl {
namespace {

// What else of a device can have no memory: cuBLAS's and cuDNN's handles and workspaces, and calls
// of the driver; those of ROCm are called alike.
constexpr std::array<std::string_view, 4> kSigns{"STATUS_ALLOC_FAILED", "DEVICE_ALLOCATION_FAILED",
                                                 "CUDA error: out of memory",
                                                 "HIP error: out of memory"};

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const FullMemory*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  if (from_torch == nullptr) return false;
  const std::string_view words = from_torch->what_without_backtrace();
  return std::ranges::any_of(kSigns,
                             [&](std::string_view sign) { return words.find(sign) != words.npos; });
}

std::string no_memory_left(const std::exception& error, at::Device device) {
  if (dynamic_cast<const FullMemory*>(&error) != nullptr) return error.what();
  return fmt::format("device {} has no memory left", device.str());
}

std::string sentence_of(const std::exception& error) {
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  if (from_torch == nullptr) return error.what();
  const std::string words = from_torch->what_without_backtrace();
  return words.substr(0, words.find('\n'));
}

}  // namespace mpi4dl
