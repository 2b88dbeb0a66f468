// AmoebaNet-D, written as simply as possible: one process, whole images, NCHW.
// Tests compare the distributed model with this one, and benchmarks measure against it, so the two
// share no code.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

namespace mpi4dl::baseline {

struct AmoebaNetOptions {
  int num_layers = 18;  ///< Normal cells, a multiple of 3; reductions and stems come on top.
  int64_t num_filters = 416;
  int64_t classes = 10;
};

struct AmoebaCell;

/// Maps images [N, 3, H, W] of any size to logits [N, classes].
struct AmoebaNetImpl : torch::nn::Module {
  explicit AmoebaNetImpl(AmoebaNetOptions options);
  torch::Tensor forward(const torch::Tensor& images);

 private:
  torch::nn::AnyModule stem_;
  std::vector<std::shared_ptr<AmoebaCell>> cells_;
  torch::nn::Sequential classify_;
};
TORCH_MODULE(AmoebaNet);

}  // namespace mpi4dl::baseline
