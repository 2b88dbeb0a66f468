#pragma once

#include <ATen/core/Tensor.h>

#include "backend/backend.hpp"
#include "base/instruction_set.hpp"

// The functions of the same names of Backend, each in one pass over memory, with the vectors of
// `set`; bfloat16 is computed in float32.
namespace mpi4dl::cpu {

/// Returns true for tensors that the functions below take: channels-last, float32, float64 or
/// bfloat16. All tensors of a call have the same type.
bool suited_for_normalisation(const at::Tensor& x);

at::Tensor channel_moments(const at::Tensor& x, InstructionSet set);
at::Tensor channel_sums(const at::Tensor& x, InstructionSet set);
void normalise(const at::Tensor& x, const ChannelMap& map, const at::Tensor& residual,
               const at::Tensor& y, InstructionSet set);
at::Tensor gradient_sums(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                         InstructionSet set);
void normalise_backward(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                        const at::Tensor& means, const at::Tensor& dx, InstructionSet set);

}  // namespace mpi4dl::cpu
