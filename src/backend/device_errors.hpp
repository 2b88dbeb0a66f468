#pragma once

#include <c10/core/Device.h>

#include <exception>
#include <string>

#include "base/error.hpp"

namespace mpi4dl {

/// Begins a sentence about a device whose memory is full, perhaps another rank's.
class FullMemory : public Error {
 public:
  using Error::Error;
};

/// Returns whether a device had not the memory that was asked for.
/// libtorch's allocator, cuBLAS, cuDNN and CUDA itself each say so in their own way.
bool is_out_of_memory(const std::exception& error);

/// Begins a sentence about such an error: "device cuda:0 has no memory left".
std::string no_memory_left(const std::exception& error, at::Device device);

/// Returns what an error says, in one line: libtorch appends advice and a stack trace.
std::string sentence_of(const std::exception& error);

}  // namespace mpi4dl
