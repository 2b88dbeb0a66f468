#pragma once

#include <torch/nn/modules/container/any.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <memory>
#include <string>

namespace mpi4dl::baseline {

struct TrainingOptions {
  std::string model = "resnet";
  int resnet_version = 2;
  int depth = 110;
  bool global_pool_head = false;
  int num_layers = 18;
  int64_t num_filters = 416;
  int64_t classes = 10;
  int64_t height = 32, width = 32;
  int64_t batch = 1;
  c10::ScalarType type = c10::ScalarType::Float;
  at::Device device = at::kCPU;
};

/// Trains a model as any user of libtorch would: whole images, contiguous NCHW, SGD with momentum,
/// on random images that are where it computes already.
class Training {
 public:
  explicit Training(const TrainingOptions& options);

  /// Runs forward, loss, backward and update; returns the seconds until all of it is done.
  double step();

 private:
  torch::nn::AnyModule model_;
  torch::Tensor images_, labels_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
};

}  // namespace mpi4dl::baseline
