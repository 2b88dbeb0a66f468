#pragma once

#include <string>

#include "graph/graph.hpp"

namespace mpi4dl {

// clang-format off
// The text form of a graph, which can be written, read and edited:
//
//     input 3x64x64
//     cell stem
//     stem.conv = convolution(input) out_channels=16 kernel=3x3 padding=1x1 bias=false with w
//     stem.bn = batch_norm(stem.conv)
//     cell head
//     head.pool = global_average_pooling(stem.bn)
//     head.fc = linear(head.pool) out_features=10 with multiply(v:10x16, g:10x1), frozen fc.bias
//     output head.fc
//
// Options that have their defaults and parameters that are named after their node are left out. A
// weight that is computed from parameters is a formula (graph/formula.hpp), where each of them has
// its shape. A name with other characters than letters, digits and _ . - / is in quotes. What
// follows a # is a comment.
// clang-format on

/// Returns a graph as text; parse_graph makes the same graph of it.
std::string to_text(const Graph& graph);

/// Returns the line of one node, to be quoted in a message.
std::string to_text(const Graph& graph, const Node& node);

/// Returns the graph that a text describes; throws UsageError that names the line where it is none.
Graph parse_graph(const std::string& text);

}  // namespace mpi4dl
