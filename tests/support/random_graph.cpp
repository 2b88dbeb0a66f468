#include "support/random_graph.hpp"

#include "base/error.hpp"
#include "support/random_operators.hpp"

namespace mpi4dl::testing {
namespace {

constexpr int64_t kMostChannels = 6;
constexpr int64_t kMostPixels = 2000;  // of a value that may still be enlarged

class GraphWriter {
 public:
  GraphWriter(Dice& dice, const Shape& image) : dice_(dice), graph_(image) {}

  Graph write() {
    Value x = graph_.input();
    const int64_t cells = dice_.pick(2, 6);
    for (int64_t i = 0; i < cells; ++i) {
      begin_cell();
      x = cell(x);
      states_.push_back(x);
    }
    begin_cell();
    graph_.set_output(head(x));
    return graph_;
  }

 private:
  void begin_cell() { graph_.begin_cell(fmt::format("cell{}", graph_.cells().size())); }

  Value add(const Operator& op, const std::vector<Value>& inputs) {
    const Value value = graph_.add(fmt::format("n{}", graph_.nodes().size()), op, inputs);
    bool centred = is_norm(op);
    for (const Value& input : inputs) centred = centred || centred_[input.id];
    centred_.push_back(centred && !std::holds_alternative<Relu>(op));
    return value;
  }

  static bool is_norm(const Operator& op) {
    return std::holds_alternative<BatchNorm>(op) || std::holds_alternative<GroupNorm>(op);
  }

  /// Never a norm of a norm with nothing but linear operators between them: its mean is zero, so
  /// pixels of a constant image are zero but for rounding, and a ReLU's gradient there is chance.
  Value add_norm(const Operator& norm, Value x) {
    return add(norm, {centred_[x.id] ? add(Relu{}, {x}) : x});
  }

  /// The value itself where the operator does not fit.
  Value try_add(const Operator& op, Value x) {
    try {
      return add(op, {x});
    } catch (const UsageError&) {
      return x;
    }
  }

  Value cell(Value x) {
    switch (dice_.pick(0, 4)) {
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

  Value chain(Value x) {
    for (int64_t layers = dice_.pick(1, 3); layers > 0; --layers) x = layer(x);
    return x;
  }

  Value layer(Value x) {
    const Shape& shape = graph_.shape(x);
    switch (dice_.pick(0, 13)) {
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
        return add_norm(BatchNorm{}, x);
      case 8:
        return add(Relu{}, {x});
      case 9:
        return add_norm(draw_group_norm(dice_, shape), x);
      case 10:
        return add(dropout(), {x});
      case 11:
        return enlarged(x);
      default:
        return add(same_size(dice_.pick(1, kMostChannels), shape), {x});
    }
  }

  Value enlarged(Value x) {
    const Shape& shape = graph_.shape(x);
    if (Shape{1, shape.space}.elements() > kMostPixels / 4) return x;
    if (dice_.chance(0.5)) return try_add(draw_transposed_convolution(dice_, shape), x);
    return try_add(
        Upsample{.mode = dice_.one_of({Interpolation::nearest, Interpolation::bilinear})}, x);
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

  /// Two to four ways to look at the same value, side by side.
  Value branches(Value x) {
    std::vector<Value> all;
    for (int64_t i = dice_.pick(2, 4); i > 0; --i) all.push_back(branch(x));
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

  /// As AmoebaNet does: the results of the cell before and of an earlier one.
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

  /// Convolution, batch norm and ReLU, either way round.
  Value unit(Value x, int64_t stride) {
    const auto normalised = [this](Value v) { return add(Relu{}, {add_norm(BatchNorm{}, v)}); };
    const bool before = dice_.chance(0.4);
    if (before) x = normalised(x);
    Convolution convolution = same_size(dice_.pick(2, kMostChannels), graph_.shape(x));
    convolution.stride = each(stride);
    x = add(convolution, {x});
    return before ? x : normalised(x);
  }

  Value head(Value x) {
    if (dice_.chance(0.3)) x = try_add(draw_avg_pool(dice_, graph_.shape(x)), x);
    if (dice_.chance(0.3)) x = add(Relu{}, {x});
    x = dice_.chance(0.5) ? add(GlobalAvgPool{}, {x}) : add(Flatten{}, {x});
    if (dice_.chance(0.2)) x = add(dropout(), {x});
    if (dice_.chance(0.2)) x = add(Relu{}, {add(Linear{.out_features = 5}, {x})});
    return add(Linear{.out_features = dice_.pick(2, 7)}, {x});
  }

  Dropout dropout() { return {.probability = dice_.one_of({0.1, 0.25, 0.5})}; }

  /// An odd kernel, perhaps dilated, padded so that the size stays for stride 1.
  Convolution same_size(int64_t channels, const Shape& input) {
    Convolution op{.out_channels = channels, .kernel = {}};
    for (size_t axis = 0; axis < input.space.size(); ++axis) {
      const int64_t kernel = dice_.one_of<int64_t>({1, 3, 3, 3, 5});
      const int64_t dilation = dice_.one_of<int64_t>({1, 1, 2, 3});
      op.kernel.push_back(kernel);
      op.dilation.push_back(dilation);
      op.padding.push_back(dilation * (kernel - 1) / 2);
    }
    op.bias = dice_.chance(0.5);
    return op;
  }

  /// 1x7 or 7x1: long on one axis, counted from the last.
  Convolution flat(int64_t channels, int64_t axis_from_last) const {
    Convolution op{.out_channels = channels, .kernel = each(1), .padding = each(0)};
    const size_t axis = op.kernel.size() - 1 - axis_from_last;
    op.kernel[axis] = 7;
    op.padding[axis] = 3;
    return op;
  }

  Extents each(int64_t value) const {
    return Extents(graph_.shape(graph_.input()).space.size(), value);
  }

  Dice& dice_;
  Graph graph_;
  std::vector<Value> states_;         // results of the cells so far
  std::vector<bool> centred_{false};  // by node: a norm's result, with no ReLU since
};

}  // namespace

Graph random_graph(Dice& dice, const Shape& image) {
  return GraphWriter(dice, image).write();
}

}  // namespace mpi4dl::testing
