#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <vector>

namespace mpi4dl {

/// Returns the results of what makes, takes apart and casts lists, tuples and dictionaries, and has
/// no operator that could be run; nothing where a node is another one.
std::optional<std::vector<c10::IValue>> handle_container(const torch::jit::Node& node,
                                                         const std::vector<c10::IValue>& inputs);

/// Returns whether an operator only handles values of any type, such as the one that appends to a
/// list, and may be run with tensors that stand for others.
bool handles_anything(const c10::FunctionSchema& schema);

}  // namespace mpi4dl
