#include "models/resnet.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr int kStages = 3;
constexpr int64_t kStemChannels = 16;
constexpr int64_t kHeadWindow = 8;

Convolution conv(int64_t out, int64_t kernel, int64_t stride = 1) {
  return {.out_channels = out,
          .kernel = {kernel, kernel},
          .stride = {stride, stride},
          .padding = {kernel / 2, kernel / 2}};
}

/// Adds batch norm, ReLU and a convolution.
Value pre_activated(Graph& graph, const std::string& part, const Convolution& convolution,
                    Value x) {
  x = graph.add(part + ".bn", BatchNorm{}, {x});
  x = graph.add(part + ".relu", Relu{}, {x});
  return graph.add(part + ".conv", convolution, {x});
}

/// Adds a convolution and batch norm.
Value normalised(Graph& graph, const std::string& part, const Convolution& convolution, Value x) {
  x = graph.add(part + ".conv", convolution, {x});
  return graph.add(part + ".bn", BatchNorm{}, {x});
}

struct Block {
  int stage = 0, index = 0;

  bool first_of_stage() const { return index == 0; }
  bool first_of_model() const { return stage == 0 && index == 0; }
  int64_t stride() const { return first_of_stage() && stage > 0 ? 2 : 1; }
};

Value block_v1(Graph& graph, const Block& block, Value x) {
  const int64_t channels = int64_t{16} << block.stage;
  Value y = normalised(graph, "r1", conv(channels, 3, block.stride()), x);
  y = graph.add("r1.relu", Relu{}, {y});
  y = normalised(graph, "r2", conv(channels, 3), y);
  if (block.first_of_stage() && !block.first_of_model())
    x = graph.add("shortcut.conv", conv(channels, 1, block.stride()), {x});
  y = graph.add("add", Add{}, {x, y});
  return graph.add("relu", Relu{}, {y});
}

Value block_v2(Graph& graph, const Block& block, Value x) {
  const int64_t channels = int64_t{64} << block.stage;
  // The bottleneck is a quarter of the output in stage 0 but half of it in the other stages.
  const int64_t inner = block.stage == 0 ? channels / 4 : channels / 2;
  const Convolution first = conv(inner, 3, block.stride());
  // The stem has already normalised and activated what the very first block reads.
  Value y = block.first_of_model() ? graph.add("r1.conv", first, {x})
                                   : pre_activated(graph, "r1", first, x);
  y = pre_activated(graph, "r2", conv(inner, 3), y);
  y = pre_activated(graph, "r3", conv(channels, 1), y);
  if (block.first_of_stage())
    x = graph.add("shortcut.conv", conv(channels, 1, block.stride()), {x});
  return graph.add("add", Add{}, {x, y});
}

/// Adds the mean of 8x8 windows as in the original, or of the whole map.
Value pool(Graph& graph, const ModelOptions& options, Value x) {
  if (options.global_pool_head) return graph.add("pool", GlobalAvgPool{}, {x});
  const Shape& map = graph.shape(x);
  validate(std::ranges::min(map.space) >= kHeadWindow,
           "head.pool averages {0}x{0} windows, but its input is only {1}: use images of at least "
           "29x29 or a global pool head",
           kHeadWindow, to_string(map));
  x = graph.add("pool", AvgPool{.kernel = {kHeadWindow, kHeadWindow}}, {x});
  return graph.add("flatten", Flatten{}, {x});
}

void add_head(Graph& graph, const ModelOptions& options, Value x) {
  graph.begin_cell("head");
  if (options.resnet_version == 2) {
    x = graph.add("bn", BatchNorm{}, {x});
    x = graph.add("relu", Relu{}, {x});
  }
  x = pool(graph, options, x);
  if (options.dropout > 0) x = graph.add("dropout", Dropout{options.dropout}, {x});
  graph.set_output(graph.add("linear", Linear{.out_features = options.classes}, {x}));
}

int blocks_per_stage(const ModelOptions& options) {
  const int version = options.resnet_version;
  validate(version == 1 || version == 2, "ResNet has versions 1 and 2, not {}", version);
  const int layers = version == 1 ? 6 : 9;
  validate(options.depth >= layers + 2 && (options.depth - 2) % layers == 0,
           "ResNet version {} needs a depth of {}n+2, not {}; the nearest: {}", version, layers,
           options.depth, nearest_valid(options.depth, layers + 2, layers));
  return (options.depth - 2) / layers;
}

}  // namespace

Graph resnet(const ModelOptions& options) {
  const int blocks = blocks_per_stage(options);
  Graph graph({.channels = options.channels, .space = options.image});
  graph.begin_cell("stem");
  Value x = graph.add("conv", conv(kStemChannels, 3), {graph.input()});
  x = graph.add("bn", BatchNorm{}, {x});
  x = graph.add("relu", Relu{}, {x});

  for (int stage = 0; stage < kStages; ++stage)
    for (int index = 0; index < blocks; ++index) {
      graph.begin_cell(fmt::format("stage{}.block{}", stage, index));
      const Block block{stage, index};
      x = options.resnet_version == 1 ? block_v1(graph, block, x) : block_v2(graph, block, x);
    }
  add_head(graph, options, x);
  return graph;
}

}  // namespace mpi4dl
