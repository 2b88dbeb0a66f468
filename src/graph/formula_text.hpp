#pragma once

#include <string>

#include "graph/line_reader.hpp"
#include "graph/node_weight.hpp"

namespace mpi4dl {

/// Returns a formula as it stands behind "with" in the text form of a graph; a parameter in it has
/// its shape, which nothing else tells: "multiply(v:4x3x3x3, frozen g:4x1x1x1)".
std::string to_text(const Formula& formula);

/// Reads what a node names as one of its parameters: "w", "frozen w" or a formula.
ParameterChoice read_choice(LineReader& words);

}  // namespace mpi4dl
