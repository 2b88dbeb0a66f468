#pragma once

#include <ATen/core/Tensor.h>

#include "comm/context.hpp"

namespace mpi4dl {

/// Returns the values in host memory, where they may be changed, after a polite wait for the device
/// that has them. A dense tensor keeps its strides.
at::Tensor staged(const at::Tensor& tensor, const CommContext& context);

/// Returns the tensor itself where it is in host memory, and elsewhere its values there.
at::Tensor in_host_memory(const at::Tensor& tensor, const CommContext& context);

/// Brings values that in_host_memory has returned back into the tensor, without waiting.
void bring_back(const at::Tensor& values, const at::Tensor& tensor);

/// Waits politely until the device has done all that its current stream was given; the host itself
/// is never behind.
void await_device(const CommContext& context);

}  // namespace mpi4dl
