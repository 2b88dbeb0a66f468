#include "models/amoebanet.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

enum class Op { none, avg3, pool3, maxpool2, conv1x1, conv3x3, conv1x7_7x1 };

/// Names an operator and the state that it reads.
struct Edge {
  int state;
  Op op;
};

/// States 0 and 1 come from the cell's inputs; the results of pair i are added to give state i+2.
struct Genotype {
  std::array<std::pair<Edge, Edge>, 5> pairs;
  std::vector<int> concat;  ///< the states that make the cell's output
};

Genotype normal_cell() {
  using enum Op;
  return {.pairs = {{{{1, conv1x1}, {1, pool3}},
                     {{1, none}, {0, conv1x7_7x1}},
                     {{0, conv1x1}, {0, conv1x7_7x1}},
                     {{2, pool3}, {2, none}},
                     {{1, avg3}, {5, conv1x1}}}},
          .concat = {0, 3, 4, 6}};
}

Genotype reduction_cell() {
  using enum Op;
  return {.pairs = {{{{0, maxpool2}, {0, pool3}},
                     {{2, none}, {1, conv3x3}},
                     {{2, conv1x7_7x1}, {2, pool3}},
                     {{3, none}, {1, maxpool2}},
                     {{2, avg3}, {3, conv1x1}}}},
          .concat = {4, 5, 6}};
}

Convolution conv(int64_t out, const Extents& kernel, const Extents& stride = {1, 1}) {
  return {.out_channels = out,
          .kernel = kernel,
          .stride = stride,
          .padding = {kernel[0] / 2, kernel[1] / 2},
          .bias = false};
}

/// Adds ReLU, convolution and batch norm, once for each convolution; numbered where there are
/// several.
Value relu_conv_bn(Graph& graph, const std::string& prefix, const std::vector<Convolution>& convs,
                   Value x) {
  const auto name = [&](const char* layer, size_t i) {
    return convs.size() == 1 ? prefix + layer : fmt::format("{}{}{}", prefix, layer, i + 1);
  };
  for (size_t i = 0; i < convs.size(); ++i) {
    x = graph.add(name("relu", i), Relu{}, {x});
    x = graph.add(name("conv", i), convs[i], {x});
    x = graph.add(name("bn", i), BatchNorm{}, {x});
  }
  return x;
}

/// Halves the map by two 1x1 convolutions, each giving half of the channels.
Value factorized_reduce(Graph& graph, const std::string& prefix, int64_t out, Value x) {
  const Convolution half = conv(out / 2, {1, 1}, {2, 2});
  x = graph.add(prefix + "relu", Relu{}, {x});
  const Value first = graph.add(prefix + "conv1", half, {x});
  const Value second = graph.add(prefix + "conv2", half, {x});
  x = graph.add(prefix + "concat", Concat{}, {first, second});
  return graph.add(prefix + "bn", BatchNorm{}, {x});
}

Value add_op(Graph& graph, const std::string& prefix, Op op, int64_t stride, Value x) {
  const int64_t c = graph.shape(x).channels, inner = c / 4;
  const Extents strides{stride, stride};
  switch (op) {
    case Op::none:
      return stride == 1 ? x : factorized_reduce(graph, prefix, c, x);
    case Op::avg3:
    case Op::pool3:  // An average too, although its usual name is max_pool_3x3.
      return graph.add(
          prefix + "pool",
          AvgPool{
              .kernel = {3, 3}, .stride = strides, .padding = {1, 1}, .count_include_pad = false},
          {x});
    case Op::maxpool2:  // Rounds up, as every other stride-2 operator does.
      return graph.add(prefix + "pool",
                       MaxPool{.kernel = {2, 2}, .stride = strides, .ceil_mode = true}, {x});
    case Op::conv1x1:
      return relu_conv_bn(graph, prefix, {conv(c, {1, 1}, strides)}, x);
    case Op::conv3x3:
      return relu_conv_bn(graph, prefix,
                          {conv(inner, {1, 1}), conv(inner, {3, 3}, strides), conv(c, {1, 1})}, x);
    case Op::conv1x7_7x1:
      return relu_conv_bn(graph, prefix,
                          {conv(inner, {1, 1}), conv(inner, {1, 7}, {1, stride}),
                           conv(inner, {7, 1}, {stride, 1}), conv(c, {1, 1})},
                          x);
  }
  throw Error("unknown operator of an AmoebaNet cell");
}

/// Holds what the next cell reads, and how wide it is.
struct Progress {
  Value previous, before_previous;
  int64_t channels;
  bool after_reduction = false;
};

/// Returns the older input, brought to the size and channels of the newer one.
Value second_state(Graph& graph, const Progress& at) {
  const Value x = at.before_previous;
  if (at.after_reduction) return factorized_reduce(graph, "s2.", at.channels, x);
  if (graph.shape(x).channels == at.channels) return x;
  return relu_conv_bn(graph, "s2.", {conv(at.channels, {1, 1})}, x);
}

Value cell_output(Graph& graph, const Progress& at, bool reduction) {
  const Genotype genotype = reduction ? reduction_cell() : normal_cell();
  std::vector<Value> states{relu_conv_bn(graph, "s1.", {conv(at.channels, {1, 1})}, at.previous),
                            second_state(graph, at)};
  int op = 0;
  const auto apply = [&](const Edge& edge) {
    const int64_t stride = reduction && edge.state < 2 ? 2 : 1;
    return add_op(graph, fmt::format("op{}.", op++), edge.op, stride, states[edge.state]);
  };
  for (const auto& [left, right] : genotype.pairs) {
    const Value first = apply(left), second = apply(right);
    states.push_back(graph.add(fmt::format("state{}", states.size()), Add{}, {first, second}));
  }
  std::vector<Value> outputs;
  for (const int state : genotype.concat) outputs.push_back(states[state]);
  return graph.add("concat", Concat{}, outputs);
}

void add_cell(Graph& graph, const std::string& name, bool reduction, Progress& at) {
  graph.begin_cell(name);
  if (reduction) at.channels *= 2;
  const Value output = cell_output(graph, at, reduction);
  at.before_previous = std::exchange(at.previous, output);
  at.after_reduction = reduction;
}

void check(const ModelOptions& options) {
  validate(options.num_layers >= 3 && options.num_layers % 3 == 0,
           "AmoebaNet needs a multiple of 3 layers, not {}; the nearest: {}", options.num_layers,
           nearest_valid(options.num_layers, 3, 3));
  validate(options.num_filters >= 8 && options.num_filters % 4 == 0,
           "AmoebaNet needs a multiple of 4 filters, at least 8, not {}; the nearest: {}",
           options.num_filters, nearest_valid(options.num_filters, 8, 4));
}

}  // namespace

Graph amoebanet(const ModelOptions& options) {
  check(options);
  const int64_t c = options.num_filters / 4;
  Graph graph({.channels = options.channels, .space = options.image});
  graph.begin_cell("stem1");
  const Value stem = relu_conv_bn(graph, "", {conv(c, {3, 3}, {2, 2})}, graph.input());

  Progress at{.previous = stem, .before_previous = stem, .channels = c};
  add_cell(graph, "stem2", /*reduction=*/true, at);
  add_cell(graph, "stem3", /*reduction=*/true, at);
  const int period = options.num_layers / 3 + 1;  // a third of the normal cells, then a reduction
  for (int i = 1; i <= options.num_layers + 2; ++i)
    add_cell(graph, fmt::format("cell{}", i), /*reduction=*/i % period == 0, at);

  graph.begin_cell("classify");
  Value x = graph.add("pool", GlobalAvgPool{}, {at.previous});
  if (options.dropout > 0) x = graph.add("dropout", Dropout{options.dropout}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = options.classes}, {x}));
  return graph;
}

}  // namespace mpi4dl
