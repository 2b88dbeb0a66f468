#include "execute/operator_graphs.hpp"

namespace mpi4dl::testing {
namespace {

/// Draws a map with these channels, a value without pixels made of it, or a map with one channel;
/// and a value with one channel for all pixels.
Value draw_operand(Dice& dice, Graph& graph, const std::string& name, Value x) {
  const int64_t channels = dice.chance(0.3) ? 1 : graph.shape(x).channels;
  const Extents one(graph.shape(x).space.size(), 1);
  if (dice.chance(0.4)) {
    const Value pooled = graph.add(name + ".pool", GlobalAvgPool{}, {x});
    return graph.add(name, Linear{.out_features = channels}, {pooled});
  }
  if (channels == graph.shape(x).channels && dice.chance(0.3)) return x;
  return graph.add(name, Convolution{.out_channels = channels, .kernel = one}, {x});
}

}  // namespace

Value draw_source(Dice& dice, Graph& graph) {
  graph.begin_cell("source");
  if (dice.chance(0.3)) return graph.input();
  return graph.add("identity", Identity{}, {graph.input()});
}

DrawGraph on_a_small_map(const DrawOperator& draw) {
  return [draw](Dice& dice, const Shape& image) {
    Graph graph(image);
    Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    Extents small;
    for (size_t axis = 0; axis < image.space.size(); ++axis) small.push_back(dice.pick(1, 5));
    x = graph.add("down", AdaptiveAvgPool{small}, {x});
    if (dice.chance(0.5)) x = graph.add("before", Pointwise{PointwiseFunction::silu}, {x});
    x = graph.add("op", draw(dice, graph.shape(x)), {x});
    if (dice.chance(0.3)) graph.begin_cell("next");
    const bool enlarges = graph.shape(x).spatial() && dice.chance(0.7);
    graph.set_output(enlarges ? graph.add("up", AdaptiveAvgPool{image.space}, {x}) : x);
    return graph;
  };
}

DrawGraph pooled_with_sum(const DrawOperator& draw) {
  return [draw](Dice& dice, const Shape& image) {
    Graph graph(image);
    Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    x = graph.add("pool", GlobalAvgPool{}, {x});
    const Operator op = draw(dice, graph.shape(x));
    const Value one = graph.add("op", op, {x}), other = graph.add("other", op, {x});
    x = graph.add("sum", Add{}, {one, other});
    if (dice.chance(0.5)) x = graph.add("relu", Relu{}, {x});
    if (dice.chance(0.5)) x = graph.add("back", Broadcast{image.space}, {x});
    graph.set_output(x);
    return graph;
  };
}

Convolution draw_pointwise(Dice& dice, const Shape& input) {
  Convolution op = draw_convolution(dice, {input.channels, {1, 1}});
  op.kernel = {1, 1};
  op.padding = {};
  return op;
}

DrawGraph one_operator(const DrawOperator& draw) {
  return [draw](Dice& dice, const Shape& image) {
    Graph graph(image);
    const Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    graph.set_output(graph.add("op", draw(dice, image), {x}));
    return graph;
  };
}

DrawGraph after_pooling(const DrawOperator& draw) {
  return [draw](Dice& dice, const Shape& image) {
    Graph graph(image);
    Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    x = graph.add("pool", GlobalAvgPool{}, {x});
    graph.set_output(graph.add("op", draw(dice, graph.shape(x)), {x}));
    return graph;
  };
}

DrawGraph several_inputs(const Operator& op, bool same_channels) {
  return [op, same_channels](Dice& dice, const Shape& image) {
    Graph graph(image);
    const Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    std::vector<Value> inputs{x};
    const Extents kernel(image.space.size(), 1);
    for (int64_t i = dice.pick(1, 3); i > 0; --i)
      inputs.push_back(
          graph.add(fmt::format("branch{}", i),
                    Convolution{.out_channels = same_channels ? image.channels : dice.pick(1, 4),
                                .kernel = kernel},
                    {x}));
    graph.set_output(graph.add("op", op, inputs));
    return graph;
  };
}

DrawGraph with_sum(const DrawOperator& draw) {
  return [draw](Dice& dice, const Shape& image) {
    Graph graph(image);
    const Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    const Operator op = draw(dice, image);
    std::vector<Value> parts{graph.add("op", op, {x})};
    const bool skip = graph.shape(parts[0]) == image && dice.chance(0.5);
    parts.push_back(skip ? x : graph.add("other", op, {x}));
    if (dice.chance(0.5)) std::swap(parts[0], parts[1]);
    const Value sum = graph.add("sum", Add{}, parts);
    graph.set_output(dice.chance(0.5) ? graph.add("relu", Relu{}, {sum}) : sum);
    return graph;
  };
}

DrawGraph pooled_and_back(bool multiplies) {
  return [multiplies](Dice& dice, const Shape& image) {
    Graph graph(image);
    Value x = draw_source(dice, graph);
    graph.begin_cell("subject");
    if (dice.chance(0.5)) x = graph.add("before", Relu{}, {x});
    const bool largest = dice.chance(0.5);
    Value s = graph.add("pool", largest ? Operator(GlobalMaxPool{}) : GlobalAvgPool{}, {x});
    s = graph.add("squeeze", Linear{.out_features = dice.pick(1, 3)}, {s});
    s = graph.add("activation", draw_activation(dice, graph.shape(s)), {s});
    if (dice.chance(0.3)) graph.begin_cell("next");
    s = graph.add("excite", Linear{.out_features = graph.shape(x).channels}, {s});
    s = graph.add("sigmoid", Pointwise{}, {s});
    if (multiplies) {
      x = graph.add("op", Elementwise{ElementwiseFunction::multiply}, {x, s});
    } else {
      x = graph.add("op", Concat{}, {x, graph.add("back", Broadcast{.space = image.space}, {s})});
    }
    if (dice.chance(0.7)) {
      if (dice.chance(0.3)) graph.begin_cell("last");
      const Extents three(image.space.size(), 3), one(image.space.size(), 1);
      x = graph.add("conv", Convolution{.out_channels = 2, .kernel = three, .padding = one}, {x});
    }
    graph.set_output(x);
    return graph;
  };
}

DrawGraph shared_and_frozen() {
  return [](Dice& dice, const Shape& image) {
    Graph graph(image);
    Value x = draw_source(dice, graph);
    Convolution op = draw_convolution(dice, image);
    op.groups = 1;
    op.out_channels = image.channels;
    const std::vector<ParameterChoice> shared{{.name = "shared.weight"}};
    graph.begin_cell("first");
    x = graph.add("conv", op, {x}, shared);
    if (dice.chance(0.5)) graph.begin_cell("second");
    x = graph.add("again", op, {x}, shared);
    const std::vector<ParameterChoice> frozen{{.name = "fixed.weight", .frozen = true}};
    const Extents kernel(image.space.size(), dice.pick(1, 3));
    if (dice.chance(0.5)) {
      x = graph.add("frozen", Convolution{.out_channels = 3, .kernel = kernel, .groups = 1}, {x},
                    frozen);
    } else {
      x = graph.add("frozen", TransposedConvolution{.out_channels = 2, .kernel = kernel}, {x},
                    frozen);
    }
    x = graph.add("norm", BatchNorm{}, {x}, {{}, {.frozen = true}});
    x = graph.add("pool", GlobalAvgPool{}, {x});
    x = graph.add("linear", Linear{.out_features = 2}, {x}, {{.frozen = dice.chance(0.5)}});
    graph.set_output(x);
    return graph;
  };
}

DrawGraph computed_weights() {
  return [](Dice& dice, const Shape& image) {
    Graph graph(image);
    Value x = draw_source(dice, graph);
    Convolution op = draw_convolution(dice, image);
    op.groups = 1;
    op.out_channels = image.channels;
    const ParameterChoice weight = draw_computed_weight(dice, "conv", op, graph.shape(x));
    graph.begin_cell("first");
    x = graph.add("conv", op, {x}, {weight});
    if (dice.chance(0.5)) graph.begin_cell("second");
    x = graph.add("again", op, {x}, {weight});
    if (dice.chance(0.5)) {
      ParameterChoice plain;
      each_parameter(*weight.formula, [&](const Formula& each) {
        if (each.shape == weight.formula->shape) plain = {each.name, each.frozen};
      });
      x = graph.add("plain", op, {x}, {plain});
    }
    const TransposedConvolution up{.out_channels = 3, .kernel = Extents(image.space.size(), 2)};
    const auto of_up = parameters(Operator(up), {graph.shape(x)});
    x = graph.add("up", up, {x},
                  {draw_computed_weight(dice, "up", of_up[0].shape),
                   draw_computed_weight(dice, "shift", of_up[1].shape)});
    x = graph.add("scale", ChannelScale{}, {x}, {draw_computed_weight(dice, "scale", {3})});
    x = graph.add("pool", GlobalAvgPool{}, {x});
    graph.set_output(graph.add("linear", Linear{.out_features = 5}, {x},
                               {draw_computed_weight(dice, "linear", {5, 3})}));
    return graph;
  };
}

Graph two_operands(Dice& dice, const Shape& image) {
  using enum ElementwiseFunction;
  Graph graph(image);
  const Value x = draw_source(dice, graph);
  graph.begin_cell("subject");
  const auto function = dice.one_of({add, multiply, subtract, maximum, minimum, divide});
  const Value a = draw_operand(dice, graph, "a", x);
  Value b = draw_operand(dice, graph, "b", x);
  if (function == divide) b = graph.add("positive", Pointwise{PointwiseFunction::exp}, {b});
  const Value y = graph.add("op", Elementwise{function}, {a, b});
  const Extents three(image.space.size(), 3);
  const bool reads_neighbours = graph.shape(y).spatial() && dice.chance(0.5);
  graph.set_output(reads_neighbours
                       ? graph.add("conv", Convolution{.out_channels = 2, .kernel = three}, {y})
                       : y);
  return graph;
}

Graph gated(Dice& dice, const Shape& image) {
  Graph graph(image);
  const Value x = draw_source(dice, graph);
  graph.begin_cell("subject");
  const Extents one(image.space.size(), 1);
  const Value gate = graph.add("gate", Convolution{.out_channels = 1, .kernel = one}, {x});
  graph.set_output(graph.add("op", Elementwise{ElementwiseFunction::multiply}, {x, gate}));
  return graph;
}

Graph equal_operands(Dice& dice, const Shape& image) {
  Graph graph(image);
  const Value x = draw_source(dice, graph);
  graph.begin_cell("subject");
  const Value y = graph.add("abs", Pointwise{PointwiseFunction::abs}, {x});
  const auto function = dice.one_of({ElementwiseFunction::maximum, ElementwiseFunction::minimum});
  graph.set_output(graph.add("op", Elementwise{function}, {x, y}));
  return graph;
}

Graph of_positive(Dice& dice, const Shape& image) {
  using enum PointwiseFunction;
  Graph graph(image);
  Value x = draw_source(dice, graph);
  graph.begin_cell("subject");
  x = graph.add("exp", Pointwise{exp}, {x});
  graph.set_output(graph.add(
      "op", Pointwise{pow, dice.one_of({0.5, -0.5, -1.0, 0.0, 1.0, 2.0, 3.0, 1.7})}, {x}));
  return graph;
}

Pointwise draw_kinked(Dice& dice, const Shape& /*input*/) {
  using enum PointwiseFunction;
  return dice.one_of<Pointwise>({{abs},
                                 {clamp, -1, 1},
                                 {clamp, 0, 0.5},
                                 {hardtanh, -1, 1},
                                 {hardtanh, 0, 6},
                                 {leaky_relu, 0.2},
                                 {elu, 0.4},
                                 {celu, 0.4},
                                 {selu},
                                 {softplus, 1, 1},
                                 {pow, 2},
                                 {pow, 0}});
}

}  // namespace mpi4dl::testing
