#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <vector>

#include "import/torchscript/recorder.hpp"

namespace mpi4dl {

/// Answers what code asks of a tensor that stands for another: its sizes, its type, the number that
/// it is. Returns nothing where a node asks something else. Throws UsageError where the answer
/// depends on values.
std::optional<c10::IValue> query(const torch::jit::Node& node,
                                 const std::vector<c10::IValue>& inputs, const Recorder& recorder);

/// Returns whether an operator makes tensors that are no known numbers, of inputs that are known.
bool makes_tensors(const torch::jit::Node& node, const std::vector<c10::IValue>& inputs);

}  // namespace mpi4dl
