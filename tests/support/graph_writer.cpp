#include "support/graph_writer.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "support/operator_table.hpp"

namespace mpi4dl::testing {
namespace {

bool is_norm(const Operator& op) {
  return std::holds_alternative<BatchNorm>(op) || std::holds_alternative<GroupNorm>(op) ||
         std::holds_alternative<ChannelNorm>(op);
}

}  // namespace

void GraphWriter::begin_cell() {
  graph_.begin_cell(fmt::format("cell{}", graph_.cells().size()));
}

Value GraphWriter::add(const Operator& op, const std::vector<Value>& inputs,
                       const std::vector<ParameterChoice>& parameters) {
  const Value value = graph_.add(fmt::format("n{}", graph_.nodes().size()), op, inputs, parameters);
  bool centred = is_norm(op);
  for (const Value& input : inputs) centred = centred || centred_[input.id];
  centred_.push_back(centred && !std::holds_alternative<Relu>(op));
  return value;
}

Value GraphWriter::add_norm(const Operator& norm, Value x) {
  return add(norm, {centred_[x.id] ? add(Relu{}, {x}) : x});
}

Value GraphWriter::try_add(const Operator& op, Value x) {
  try {
    return add(op, {x});
  } catch (const UsageError&) {
    return x;
  }
}

Operator GraphWriter::activation(Value x) {
  return draw_activation(dice_, graph_.shape(x));
}

Dropout GraphWriter::dropout() {
  Dropout op = draw_dropout(dice_, {});
  op.probability = dice_.one_of({0.1, 0.25, 0.5});
  return op;
}

Convolution GraphWriter::same_size(int64_t channels, const Shape& input) {
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

Convolution GraphWriter::flat(int64_t channels, int64_t axis_from_last) const {
  Convolution op{.out_channels = channels, .kernel = each(1), .padding = each(0)};
  const size_t axis = op.kernel.size() - 1 - axis_from_last;
  op.kernel[axis] = 7;
  op.padding[axis] = 3;
  return op;
}

Extents GraphWriter::each(int64_t value) const {
  return Extents(graph_.shape(graph_.input()).space.size(), value);
}

Operator GraphWriter::guest(const Shape& shape) {
  std::vector<const OperatorRow*> rows;
  for (const OperatorRow& row : operator_table())
    if (row.layer) rows.push_back(&row);
  return dice_.one_of(rows)->draw(dice_, shape);
}

Convolution GraphWriter::pointwise(int64_t channels) const {
  return {.out_channels = channels, .kernel = each(1)};
}

Value GraphWriter::unit(Value x, int64_t stride) {
  const auto normalised = [this](Value v) { return add(Relu{}, {add_norm(BatchNorm{}, v)}); };
  const bool before = dice_.chance(0.4);
  if (before) x = normalised(x);
  Convolution convolution = same_size(dice_.pick(2, kMostChannels), graph_.shape(x));
  convolution.stride = each(stride);
  x = add(convolution, {x});
  return before ? x : normalised(x);
}

}  // namespace mpi4dl::testing
