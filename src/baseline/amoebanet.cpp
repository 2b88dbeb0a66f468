#include "baseline/amoebanet.hpp"

#include <array>
#include <string>
#include <utility>

#include <torch/nn.h>

namespace mpi4dl::baseline {

namespace nn = torch::nn;

namespace {

enum class Op { none, avg3, pool3, maxpool2, conv1x1, conv3x3, conv1x7_7x1 };

struct Edge {
  int state;
  Op op;
};

struct Pair {
  Edge left, right;
};

/// States 0 and 1 are the cell's two inputs; pair i adds two operators' results to give state i+2.
struct Genotype {
  std::array<Pair, 5> pairs;
  std::vector<int> concat;
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

nn::Conv2dOptions conv(int64_t in, int64_t out, torch::ExpandingArray<2> kernel,
                       torch::ExpandingArray<2> stride = 1) {
  return nn::Conv2dOptions(in, out, kernel)
      .stride(stride)
      .padding({kernel->at(0) / 2, kernel->at(1) / 2})
      .bias(false);
}

/// Halves the map by two 1x1 convolutions, each giving half of the channels.
struct FactorizedReduce : nn::Module {
  FactorizedReduce(int64_t in, int64_t out)
      : conv1(register_module("conv1", nn::Conv2d(conv(in, out / 2, 1, 2)))),
        conv2(register_module("conv2", nn::Conv2d(conv(in, out / 2, 1, 2)))),
        bn(register_module("bn", nn::BatchNorm2d(out))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor active = torch::relu(x);
    return bn->forward(torch::cat({conv1->forward(active), conv2->forward(active)}, /*dim=*/1));
  }

  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn;
};

/// Runs ReLU, convolution and batch norm, once for each convolution given.
struct ReluConvBn : nn::Module {
  explicit ReluConvBn(const std::vector<nn::Conv2dOptions>& convolutions) {
    for (const auto& options : convolutions) {
      const std::string number = convolutions.size() == 1 ? "" : std::to_string(convs.size() + 1);
      convs.emplace_back(register_module("conv" + number, nn::Conv2d(options)));
      norms.emplace_back(register_module("bn" + number, nn::BatchNorm2d(options.out_channels())));
    }
  }

  torch::Tensor forward(torch::Tensor x) {
    for (size_t i = 0; i < convs.size(); ++i)
      x = norms[i]->forward(convs[i]->forward(torch::relu(x)));
    return x;
  }

  std::vector<nn::Conv2d> convs;
  std::vector<nn::BatchNorm2d> norms;
};

nn::AnyModule conv_op(const std::vector<nn::Conv2dOptions>& convolutions) {
  return nn::AnyModule(std::make_shared<ReluConvBn>(convolutions));
}

nn::AnyModule reduce_op(int64_t in, int64_t out) {
  return nn::AnyModule(std::make_shared<FactorizedReduce>(in, out));
}

nn::AnyModule make_op(Op op, int64_t c, int64_t stride) {
  const int64_t inner = c / 4;
  switch (op) {
    case Op::none:
      return stride == 1 ? nn::AnyModule(nn::Identity()) : reduce_op(c, c);
    case Op::avg3:
    case Op::pool3:  // An average too, although MPI4DL calls it max_pool_3x3.
      return nn::AnyModule(nn::AvgPool2d(
          nn::AvgPool2dOptions(3).stride(stride).padding(1).count_include_pad(false)));
    case Op::maxpool2:  // Rounds up, as every other stride-2 operator does.
      return nn::AnyModule(nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(stride).ceil_mode(true)));
    case Op::conv1x1:
      return conv_op({conv(c, c, 1, stride)});
    case Op::conv3x3:
      return conv_op({conv(c, inner, 1), conv(inner, inner, 3, stride), conv(inner, c, 1)});
    case Op::conv1x7_7x1:
      return conv_op({conv(c, inner, 1), conv(inner, inner, {1, 7}, {1, stride}),
                      conv(inner, inner, {7, 1}, {stride, 1}), conv(inner, c, 1)});
  }
  TORCH_CHECK(false, "unknown operator");
}

struct CellShape {
  int64_t previous, before_previous;  // Channels of the outputs of the last two cells.
  int64_t channels;
  bool reduction = false, after_reduction = false;
};

nn::AnyModule make_s2(const CellShape& shape) {
  if (shape.after_reduction) return reduce_op(shape.before_previous, shape.channels);
  if (shape.before_previous == shape.channels) return nn::AnyModule(nn::Identity());
  return conv_op({conv(shape.before_previous, shape.channels, 1)});
}

}  // namespace

struct AmoebaCell : nn::Module {
  explicit AmoebaCell(const CellShape& shape)
      : genotype(shape.reduction ? reduction_cell() : normal_cell()),
        s1(conv_op({conv(shape.previous, shape.channels, 1)})),
        s2(make_s2(shape)) {
    register_module("s1", s1.ptr());
    register_module("s2", s2.ptr());
    for (const auto& [left, right] : genotype.pairs)
      for (const auto& [state, op] : {left, right}) {
        const int64_t stride = shape.reduction && state < 2 ? 2 : 1;
        const std::string name = "op" + std::to_string(ops.size());
        register_module(name, ops.emplace_back(make_op(op, shape.channels, stride)).ptr());
      }
  }

  torch::Tensor forward(const torch::Tensor& previous, const torch::Tensor& before_previous) {
    std::vector<torch::Tensor> states{s1.forward(previous), s2.forward(before_previous)};
    auto op = ops.begin();
    for (const auto& [left, right] : genotype.pairs) {
      const torch::Tensor first = (op++)->forward(states[left.state]);
      states.push_back(first + (op++)->forward(states[right.state]));
    }
    std::vector<torch::Tensor> outputs;
    for (int state : genotype.concat) outputs.push_back(states[state]);
    return torch::cat(outputs, /*dim=*/1);
  }

  Genotype genotype;
  nn::AnyModule s1, s2;
  std::vector<nn::AnyModule> ops;
};

AmoebaNetImpl::AmoebaNetImpl(AmoebaNetOptions options) {
  TORCH_CHECK(options.num_layers > 0 && options.num_layers % 3 == 0,
              "AmoebaNet needs a multiple of 3 layers, not ", options.num_layers);
  const int64_t c = options.num_filters / 4;
  stem_ = conv_op({conv(3, c, 3, 2)});
  register_module("stem1", stem_.ptr());

  CellShape shape{.previous = c, .before_previous = c, .channels = c};
  const auto add_cell = [&](const std::string& name, bool reduction) {
    shape.reduction = reduction;
    if (reduction) shape.channels *= 2;
    const auto& cell = cells_.emplace_back(std::make_shared<AmoebaCell>(shape));
    register_module(name, cell);
    const int64_t out = shape.channels * static_cast<int64_t>(cell->genotype.concat.size());
    shape.before_previous = std::exchange(shape.previous, out);
    shape.after_reduction = reduction;
  };
  add_cell("stem2", true);
  add_cell("stem3", true);
  const int period = options.num_layers / 3 + 1;  // A third of the normal cells, then a reduction.
  for (int i = 1; i <= options.num_layers + 2; ++i)
    add_cell("cell" + std::to_string(i), i % period == 0);

  classify_ = register_module(
      "classify", nn::Sequential({{"pool", nn::AdaptiveAvgPool2d(1)},
                                  {"flatten", nn::Flatten()},
                                  {"linear", nn::Linear(shape.previous, options.classes)}}));
}

torch::Tensor AmoebaNetImpl::forward(const torch::Tensor& images) {
  torch::Tensor previous = stem_.forward(images);
  torch::Tensor before_previous = previous;
  for (const auto& cell : cells_) {
    torch::Tensor out = cell->forward(previous, before_previous);
    before_previous = std::exchange(previous, out);
  }
  return classify_->forward(previous);
}

}  // namespace mpi4dl::baseline
