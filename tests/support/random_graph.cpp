#include "support/random_graph.hpp"

#include "support/graph_writer.hpp"
#include "support/operator_table.hpp"

namespace mpi4dl::testing {
namespace {

constexpr int64_t kMostPixels = 2000;  // of a value that may still be enlarged

class RandomGraph : GraphWriter {
 public:
  using GraphWriter::GraphWriter;

  Graph write(bool dense) {
    Value x = graph_.input();
    const int64_t cells = dice_.pick(2, 6);
    for (int64_t i = 0; i < cells; ++i) {
      begin_cell();
      x = cell(x);
      states_.push_back(x);
    }
    begin_cell();
    graph_.set_output(dense ? add(same_size(dice_.pick(1, 3), graph_.shape(x)), {x}) : head(x));
    return graph_;
  }

 private:
  Value cell(Value x) {
    switch (dice_.pick(0, 9)) {
      case 7:
        return pyramid(x);
      case 8:
        return hourglass(x);
      case 9:
        return gated(x);
      case 5:
        return excited(x);
      case 6:
        return shared(x);
      case 0:
        return residual(x);
      case 1:
        return branches(x);
      case 2:
        return two_states(x);
      default:
        return chain(x);
    }
  }

  /// Adds squeeze and excitation, or ASPP's image branch.
  Value excited(Value x) {
    x = unit(x, 1);
    const int64_t channels = graph_.shape(x).channels;
    Value s = add(dice_.chance(0.3) ? Operator(GlobalMaxPool{}) : GlobalAvgPool{}, {x});
    s = dice_.chance(0.5)
            ? on_one_pixel(s)
            : add(activation(s), {add(Linear{.out_features = dice_.pick(1, 4)}, {s})});
    if (dice_.chance(0.3)) begin_cell();
    s = add(dice_.chance(0.5) ? Operator(pointwise(channels)) : Linear{.out_features = channels},
            {s});
    if (dice_.chance(0.3)) s = add(draw_channel_convolution(dice_, graph_.shape(s)), {s});
    s = add(Pointwise{}, {s});
    if (dice_.chance(0.6)) return add(combination(), {x, s});
    const Value both = add(Concat{}, {x, add(Broadcast{.space = graph_.shape(x).space}, {s})});
    return add(Convolution{.out_channels = channels, .kernel = each(1)}, {both});
  }

  /// Combines a map with one channel that is made of it, or with another map.
  Value gated(Value x) {
    x = unit(x, 1);
    const int64_t channels = dice_.chance(0.5) ? 1 : graph_.shape(x).channels;
    const Value gate =
        add(Pointwise{}, {add(Convolution{.out_channels = channels, .kernel = each(1)}, {x})});
    return add(combination(), dice_.chance(0.7) ? std::vector{x, gate} : std::vector{gate, x});
  }

  Operator combination() {
    using enum ElementwiseFunction;
    return Elementwise{dice_.one_of({add, multiply, multiply, subtract, maximum, minimum})};
  }

  /// Adds layers to a pooled value.
  Value on_one_pixel(Value s) {
    const auto convolved = [&] { return add(pointwise(dice_.pick(2, 4)), {s}); };
    for (int64_t layers = dice_.pick(1, 4); layers > 0; --layers) {
      const Shape& shape = graph_.shape(s);
      switch (dice_.pick(0, 6)) {
        case 0:
          s = add_norm(BatchNorm{}, convolved());
          break;
        case 1:
          s = add_norm(GroupNorm{}, convolved());
          break;
        case 2:
          s = add(guest(shape), {s});
          break;
        case 3:
          s = add(dropout(), {s});
          break;
        case 4:
          s = add(Add{}, {s, add(pointwise(shape.channels), {s})});
          break;
        case 5:
          s = add(Concat{}, {s, convolved()});
          break;
        default:
          s = add(Relu{}, {convolved()});
      }
    }
    return s;
  }

  /// Adds maps of few pixels with layers on them, which come back beside the value, as in PSPNet.
  Value pyramid(Value x) {
    const Extents space = graph_.shape(x).space;
    std::vector<Value> all{x};
    for (int64_t i = dice_.pick(1, 3); i > 0; --i) {
      Value s = dice_.chance(0.5) ? add(AdaptiveAvgPool{each(dice_.pick(1, 2))}, {x})
                                  : add(draw_adaptive_avg_pool(dice_, graph_.shape(x)), {x});
      if (dice_.chance(0.4)) begin_cell();
      s = dice_.chance(0.5) ? unit(s, 1) : add(same_size(2, graph_.shape(s)), {s});
      if (dice_.chance(0.4)) begin_cell();
      all.push_back(add(Resize{.space = space}, {s}));
    }
    return add(Concat{}, all);
  }

  /// Goes down and up again, as a U-Net does: not by means, which may be those of a norm.
  Value hourglass(Value x) {
    std::vector<Value> skips;
    for (int64_t depth = dice_.pick(1, 3); depth > 0; --depth) {
      skips.push_back(x);
      x = unit(x, 2);
      if (dice_.chance(0.5)) begin_cell();
    }
    for (; !skips.empty(); skips.pop_back()) {
      x = add(Resize{.space = graph_.shape(skips.back()).space}, {x});
      x = unit(add(Concat{}, {x, skips.back()}), 1);
      if (skips.size() > 1 && dice_.chance(0.5)) begin_cell();
    }
    return x;
  }

  /// Uses a convolution twice, perhaps in two cells, which is perhaps not trained; names tell what
  /// is frozen.
  Value shared(Value x) {
    Convolution op = same_size(graph_.shape(x).channels, graph_.shape(x));
    op.bias = true;
    const std::string id = fmt::format("{}", graph_.nodes().size());
    const auto choose = [&](const std::string& what) -> ParameterChoice {
      const bool frozen = dice_.chance(0.3);
      return {(frozen ? "frozen" : "shared") + id + what, frozen};
    };
    std::vector<ParameterChoice> choices{choose(".weight"), choose(".bias")};
    if (dice_.chance(0.5)) choices[0] = draw_computed_weight(dice_, id, op, graph_.shape(x));
    x = add(op, {x}, choices);
    if (dice_.chance(0.5)) begin_cell();
    x = add(activation(x), {x});
    return add(op, {x}, {choices[0], dice_.chance(0.5) ? choices[1] : ParameterChoice{}});
  }

  Value chain(Value x) {
    for (int64_t layers = dice_.pick(1, 3); layers > 0; --layers) x = layer(x);
    return x;
  }

  Value layer(Value x) {
    const Shape& shape = graph_.shape(x);
    switch (dice_.pick(0, 15)) {
      case 0:
      case 1:
        return try_add(draw_convolution(dice_, shape), x);
      case 2:
      case 3:
        return unit(x, 1);
      case 4:
        return unit(x, 2);
      case 5:
        return try_add(draw_max_pool(dice_, shape), x);
      case 6:
        return try_add(draw_avg_pool(dice_, shape), x);
      case 7:
        return add_norm(draw_batch_norm(dice_, shape), x);
      case 8:
        return add(guest(shape), {x});
      case 9:
        return add_norm(draw_group_norm(dice_, shape), x);
      case 10:
        return add(dropout(), {x});
      case 11:
        return enlarged(x);
      case 12:
        return over_channels(x);
      case 13:
        return try_add(draw_pad(dice_, shape), x);
      case 14:
        return shuffled(x);
      default:
        return add(same_size(dice_.pick(1, kMostChannels), shape), {x});
    }
  }

  /// Adds what makes a constant of a single channel, where there is more than that.
  Value over_channels(Value x) {
    const Shape& shape = graph_.shape(x);
    if (shape.channels == 1) return x;
    return dice_.chance(0.3) ? add(ChannelSoftmax{}, {x})
                             : add_norm(draw_channel_norm(dice_, shape), x);
  }

  static bool may_grow(const Shape& shape) { return positions(shape.space) <= kMostPixels / 4; }

  Value enlarged(Value x) {
    const Shape& shape = graph_.shape(x);
    if (!may_grow(shape)) return x;
    if (dice_.chance(0.5)) return try_add(draw_transposed_convolution(dice_, shape), x);
    return try_add(draw_resize(dice_, shape), x);
  }

  /// Makes channels of pixels, or the other way round.
  Value shuffled(Value x) {
    if (dice_.chance(0.5)) return try_add(PixelUnshuffle{}, x);
    if (!may_grow(graph_.shape(x)) || each(1).size() != 2) return x;
    const Convolution op{.out_channels = 4 * dice_.pick(1, 2), .kernel = each(1)};
    return add(PixelShuffle{}, {add(op, {x})});
  }

  Value residual(Value x) {
    const int64_t stride = dice_.chance(0.3) ? 2 : 1;
    Value y = unit(x, stride);
    y = dice_.chance(0.3)
            ? add_norm(BatchNorm{},
                       add(same_size(dice_.pick(2, kMostChannels), graph_.shape(y)), {y}))
            : unit(y, 1);
    if (stride != 1 || graph_.shape(x) != graph_.shape(y))
      x = add(
          Convolution{
              .out_channels = graph_.shape(y).channels, .kernel = each(1), .stride = each(stride)},
          {x});
    y = add(Add{}, {x, y});
    return dice_.chance(0.5) ? add(Relu{}, {y}) : y;
  }

  /// Adds two to four branches that read the same value, and concatenates them.
  Value branches(Value x) {
    std::vector<Value> all;
    for (int64_t i = dice_.pick(2, 4); i > 0; --i) all.push_back(branch(x));
    if (dice_.chance(0.2)) all.push_back(all[0]);
    return add(Concat{}, all);
  }

  Value branch(Value x) {
    const Shape shape = graph_.shape(x);
    const int64_t channels = dice_.pick(1, 3);
    switch (dice_.pick(0, 5)) {
      case 0:
        return x;
      case 1:
        return add(MaxPool{.kernel = each(3), .stride = each(1), .padding = each(1)}, {x});
      case 2:
        return add(AvgPool{.kernel = each(3),
                           .stride = each(1),
                           .padding = each(1),
                           .count_include_pad = dice_.chance(0.5)},
                   {x});
      case 3:
        return add(flat(channels, 1), {add(flat(channels, 0), {x})});
      case 4:
        return add(Convolution{.out_channels = channels, .kernel = each(1)}, {x});
      default:
        return add(same_size(channels, shape), {x});
    }
  }

  /// Joins the results of the cell before and of an earlier one, as AmoebaNet does.
  Value two_states(Value x) {
    std::vector<Value> equal;
    for (const Value& state : states_)
      if (state != x && graph_.shape(state).space == graph_.shape(x).space) equal.push_back(state);
    if (equal.empty()) return chain(x);
    const Value earlier = dice_.one_of(equal);
    if (dice_.chance(0.5)) return add(Concat{}, {unit(earlier, 1), x});
    const int64_t channels = dice_.pick(1, kMostChannels);
    return add(Add{}, {add(same_size(channels, graph_.shape(earlier)), {earlier}),
                       add(same_size(channels, graph_.shape(x)), {x})});
  }

  Value head(Value x) {
    if (dice_.chance(0.3)) x = try_add(draw_avg_pool(dice_, graph_.shape(x)), x);
    if (dice_.chance(0.3)) x = add(Relu{}, {x});
    x = dice_.chance(0.5) ? add(GlobalAvgPool{}, {x}) : add(Flatten{}, {x});
    if (dice_.chance(0.2)) x = add(dropout(), {x});
    if (dice_.chance(0.2)) x = add(Relu{}, {add(Linear{.out_features = 5}, {x})});
    return add(Linear{.out_features = dice_.pick(2, 7)}, {x});
  }

  std::vector<Value> states_;  // results of the cells so far
};

}  // namespace

Graph random_graph(Dice& dice, const Shape& image, bool dense) {
  return RandomGraph(dice, image).write(dense);
}

}  // namespace mpi4dl::testing
