#include "support/describe.hpp"

#include <fmt/ranges.h>

namespace mpi4dl::testing {
namespace {

std::string option(const char* name, const Extents& values) {
  return values.empty() ? "" : fmt::format(" {} {}", name, fmt::join(values, "x"));
}

template <typename Op>
std::string window(const Op& op) {
  return option("kernel", op.kernel) + option("stride", op.stride) + option("padding", op.padding);
}

std::string options(const Convolution& op) {
  return window(op) + option("dilation", op.dilation) +
         fmt::format(" groups {} bias {}", op.groups, op.bias);
}

std::string options(const TransposedConvolution& op) {
  return window(op) + option("dilation", op.dilation) +
         option("output padding", op.output_padding) +
         fmt::format(" groups {} bias {}", op.groups, op.bias);
}

std::string options(const MaxPool& op) {
  return window(op) + option("dilation", op.dilation) + fmt::format(" ceil {}", op.ceil_mode);
}

std::string options(const AvgPool& op) {
  return window(op) + fmt::format(" ceil {} count padding {}", op.ceil_mode, op.count_include_pad);
}

std::string options(const Upsample& op) {
  return fmt::format(" {} by {}", op.mode == Interpolation::nearest ? "nearest" : "bilinear",
                     op.factor);
}

std::string options(const GroupNorm& op) {
  return fmt::format(" groups {}", op.groups);
}

std::string options(const Linear& op) {
  return fmt::format(" bias {}", op.bias);
}

std::string options(const Dropout& op) {
  return fmt::format(" {}", op.probability);
}

template <typename Op>
std::string options(const Op&) {
  return "";
}

}  // namespace

std::string describe(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    std::vector<std::string> inputs;
    for (const int id : node.inputs) inputs.push_back(graph.node(id).name);
    const std::string details = std::visit([](const auto& op) { return options(op); }, node.op);
    text += fmt::format("  {} = {}{} ({}) -> {}\n", node.name, kind(node.op), details,
                        fmt::join(inputs, ", "), to_string(node.shape));
  }
  return text;
}

std::string describe(const HaloDesign& halo) {
  return halo.fused ? fmt::format("D2 with {} fused", halo.fused_layers) : "design 1";
}

}  // namespace mpi4dl::testing
