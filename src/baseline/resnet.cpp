#include "baseline/resnet.hpp"

#include <string>

#include <torch/nn.h>

namespace mpi4dl::baseline {

namespace nn = torch::nn;

namespace {

constexpr int64_t stem_channels = 16;

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
}

struct BlockShape {
  int version;
  int64_t in, inner, out;
  int64_t stride;
  bool first_of_stage, first_of_model;
};

int64_t stage_channels(int version, int stage) {
  return (version == 1 ? 16 : 64) << stage;
}

BlockShape block_shape(int version, int stage, int block) {
  const int64_t out = stage_channels(version, stage);
  const bool first = block == 0;
  BlockShape shape{.version = version,
                   .in = out,
                   .inner = out,
                   .out = out,
                   .stride = first && stage > 0 ? 2 : 1,
                   .first_of_stage = first,
                   .first_of_model = first && stage == 0};
  if (first) shape.in = stage == 0 ? stem_channels : stage_channels(version, stage - 1);
  // The bottleneck is a quarter of the output in stage 0 but only half of it in stages 1 and 2.
  if (version == 2) shape.inner = stage == 0 ? out / 4 : out / 2;
  return shape;
}

nn::Sequential pre_activated(int64_t in, const nn::Conv2d& convolution) {
  return nn::Sequential({{"bn", nn::BatchNorm2d(in)}, {"relu", nn::ReLU()}, {"conv", convolution}});
}

std::vector<nn::Sequential> residual_v1(const BlockShape& s) {
  return {nn::Sequential({{"conv", conv(s.in, s.inner, 3, s.stride)},
                          {"bn", nn::BatchNorm2d(s.inner)},
                          {"relu", nn::ReLU()}}),
          nn::Sequential({{"conv", conv(s.inner, s.out, 3)}, {"bn", nn::BatchNorm2d(s.out)}})};
}

std::vector<nn::Sequential> residual_v2(const BlockShape& s) {
  const auto conv1 = conv(s.in, s.inner, 3, s.stride);
  // The stem has already normalised and activated what the very first block reads.
  const auto r1 = s.first_of_model ? nn::Sequential({{"conv", conv1}}) : pre_activated(s.in, conv1);
  return {r1, pre_activated(s.inner, conv(s.inner, s.inner, 3)),
          pre_activated(s.inner, conv(s.inner, s.out, 1))};
}

bool has_projection(const BlockShape& s) {
  return s.first_of_stage && (s.version == 2 || !s.first_of_model);
}

// Length of one side of the map after two stride-2 convolutions and the 8x8 pooling.
int64_t pooled(int64_t length) {
  const auto halved = [](int64_t n) { return (n + 1) / 2; };
  return halved(halved(length)) / 8;
}

nn::Sequential make_head(const ResNetOptions& options) {
  const int64_t channels = stage_channels(options.version, 2);
  nn::Sequential head;
  if (options.version == 2) {
    head->push_back("bn", nn::BatchNorm2d(channels));
    head->push_back("relu", nn::ReLU());
  }
  int64_t features = channels;
  if (options.global_pool_head) {
    head->push_back("pool", nn::AdaptiveAvgPool2d(1));
  } else {
    head->push_back("pool", nn::AvgPool2d(nn::AvgPool2dOptions(8).stride(8)));
    features *= pooled(options.height) * pooled(options.width);
  }
  head->push_back("flatten", nn::Flatten());
  head->push_back("linear", nn::Linear(features, options.classes));
  return head;
}

}  // namespace

struct ResidualBlock : nn::Module {
  explicit ResidualBlock(const BlockShape& shape)
      : residual(shape.version == 1 ? residual_v1(shape) : residual_v2(shape)),
        relu_after_addition(shape.version == 1) {
    for (size_t i = 0; i < residual.size(); ++i)
      register_module("r" + std::to_string(i + 1), residual[i]);
    if (has_projection(shape)) {
      shortcut->push_back("conv", conv(shape.in, shape.out, 1, shape.stride));
      register_module("shortcut", shortcut);
    }
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = x;
    for (auto& part : residual) y = part->forward(y);
    y = y + (shortcut->is_empty() ? x : shortcut->forward(x));
    return relu_after_addition ? torch::relu(y) : y;
  }

  std::vector<nn::Sequential> residual;
  nn::Sequential shortcut;  // Empty means identity.
  bool relu_after_addition;
};

ResNetImpl::ResNetImpl(ResNetOptions options)
    : stem_({{"conv", conv(3, stem_channels, 3)},
             {"bn", nn::BatchNorm2d(stem_channels)},
             {"relu", nn::ReLU()}}),
      head_(make_head(options)) {
  TORCH_CHECK(options.version == 1 || options.version == 2, "ResNet version ", options.version,
              " is neither 1 nor 2");
  const int layers_per_n = options.version == 1 ? 6 : 9;
  TORCH_CHECK(options.depth > 2 && (options.depth - 2) % layers_per_n == 0, "ResNet v",
              options.version, " needs a depth of ", layers_per_n, "n+2, not ", options.depth);
  register_module("stem", stem_);
  for (int stage = 0; stage < 3; ++stage)
    add_stage(options.version, stage, (options.depth - 2) / layers_per_n);
  register_module("head", head_);
}

void ResNetImpl::add_stage(int version, int stage, int blocks) {
  const auto parent =
      register_module("stage" + std::to_string(stage), std::make_shared<nn::Module>());
  for (int block = 0; block < blocks; ++block)
    blocks_.push_back(parent->register_module(
        "block" + std::to_string(block),
        std::make_shared<ResidualBlock>(block_shape(version, stage, block))));
}

torch::Tensor ResNetImpl::forward(const torch::Tensor& images) {
  torch::Tensor x = stem_->forward(images);
  for (const auto& block : blocks_) x = block->forward(x);
  return head_->forward(x);
}

}  // namespace mpi4dl::baseline
