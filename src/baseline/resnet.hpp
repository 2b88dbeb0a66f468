// ResNet for CIFAR-like images, written as simply as possible: one process, whole images, NCHW.
// Tests compare the distributed model with this one, and benchmarks measure against it, so the two
// share no code.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

namespace mpi4dl::baseline {

struct ResNetOptions {
  int version = 2;  ///< 1: depth 6n+2, activation after the addition. 2: depth 9n+2, before it.
  int depth = 110;
  int64_t height = 32, width = 32;  ///< Size of the images; the default head depends on it.
  int64_t classes = 10;
  bool global_pool_head = false;  ///< Average over the whole map instead of 8x8 windows.
};

struct ResidualBlock;

/// Maps images [N, 3, height, width] to logits [N, classes].
struct ResNetImpl : torch::nn::Module {
  explicit ResNetImpl(ResNetOptions options);
  torch::Tensor forward(const torch::Tensor& images);

 private:
  void add_stage(int version, int stage, int blocks);

  torch::nn::Sequential stem_;
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  torch::nn::Sequential head_;
};
TORCH_MODULE(ResNet);

}  // namespace mpi4dl::baseline
