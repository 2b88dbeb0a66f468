// What a forward pass costs. Per element of the result: a convolution two operations for each
// weight it reads, pooling one for each pixel of its window, an addition one for each further
// input, a norm two (scale and shift), bilinear upsampling eight (four multiply-adds), ReLU and
// dropout one. Global pooling: one for each element it reads. Biases, statistics and what only
// moves data count nothing.
#include "graph/graph.hpp"

namespace mpi4dl {
namespace {

int64_t positions(const Extents& space) {
  return Shape{1, space}.elements();
}

/// A node, the shape of its first input and how many positions of its result are wanted.
struct Work {
  const Node& node;
  const Shape& input;
  int64_t pixels;

  int64_t elements() const { return node.shape.channels * pixels; }
};

int64_t cost(const Convolution& op, const Work& work) {
  return 2 * work.elements() * (work.input.channels / op.groups) * positions(op.kernel);
}

/// Each input position feeds every tap of the kernel; an output position has its share of that.
/// The product of the exact numbers would overflow for large images.
int64_t cost(const TransposedConvolution& op, const Work& work) {
  const int64_t total =
      2 * work.input.elements() * (op.out_channels / op.groups) * positions(op.kernel);
  const double share =
      static_cast<double>(work.pixels) / static_cast<double>(positions(work.node.shape.space));
  return static_cast<int64_t>(static_cast<double>(total) * share);
}

int64_t cost(const Linear&, const Work& work) {
  return 2 * work.elements() * work.input.channels;
}

int64_t cost(const MaxPool& op, const Work& work) {
  return work.elements() * positions(op.kernel);
}
int64_t cost(const AvgPool& op, const Work& work) {
  return work.elements() * positions(op.kernel);
}
int64_t cost(const GlobalAvgPool&, const Work& work) {
  return work.input.elements() * work.pixels;
}
int64_t cost(const BatchNorm&, const Work& work) {
  return 2 * work.elements();
}
int64_t cost(const GroupNorm&, const Work& work) {
  return 2 * work.elements();
}
int64_t cost(const Relu&, const Work& work) {
  return work.elements();
}
int64_t cost(const Dropout&, const Work& work) {
  return work.elements();
}

int64_t cost(const Upsample& op, const Work& work) {
  return op.mode == Interpolation::bilinear ? 8 * work.elements() : 0;
}

int64_t cost(const Add&, const Work& work) {
  return (static_cast<int64_t>(work.node.inputs.size()) - 1) * work.elements();
}

template <typename Op>
int64_t cost(const Op&, const Work&) {
  return 0;
}

}  // namespace

int64_t flops(const Graph& graph, const Node& node, int64_t pixels) {
  const Shape& input = node.inputs.empty() ? node.shape : graph.node(node.inputs.front()).shape;
  const Work work{node, input, pixels};
  return std::visit([&](const auto& op) { return cost(op, work); }, node.op);
}

int64_t flops_per_image(const Graph& graph) {
  int64_t sum = 0;
  for (const Node& node : graph.nodes()) sum += flops(graph, node, positions(node.shape.space));
  return sum;
}

}  // namespace mpi4dl
