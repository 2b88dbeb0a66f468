#include "baseline/training.hpp"

#include <torch/nn/functional/loss.h>

#include <chrono>

#include "baseline/amoebanet.hpp"
#include "baseline/device.hpp"
#include "baseline/resnet.hpp"

namespace mpi4dl::baseline {
namespace {

torch::nn::AnyModule make_model(const TrainingOptions& options) {
  if (options.model == "amoebanet")
    return torch::nn::AnyModule(AmoebaNet(AmoebaNetOptions{.num_layers = options.num_layers,
                                                           .num_filters = options.num_filters,
                                                           .classes = options.classes}));
  TORCH_CHECK(options.model == "resnet", "unknown model ", options.model);
  return torch::nn::AnyModule(ResNet(ResNetOptions{.version = options.resnet_version,
                                                   .depth = options.depth,
                                                   .height = options.height,
                                                   .width = options.width,
                                                   .classes = options.classes,
                                                   .global_pool_head = options.global_pool_head}));
}

}  // namespace

Training::Training(const TrainingOptions& options)
    : model_(make_model(options)),
      images_(torch::rand({options.batch, 3, options.height, options.width})
                  .mul_(2)
                  .sub_(1)
                  .to(options.device, options.type)),
      labels_(torch::randint(options.classes, {options.batch}, torch::kLong).to(options.device)) {
  model_.ptr()->to(options.device, options.type);
  model_.ptr()->train();
  optimizer_ = std::make_unique<torch::optim::SGD>(model_.ptr()->parameters(),
                                                   torch::optim::SGDOptions(0.001).momentum(0.9));
}

double Training::step() {
  const auto start = std::chrono::steady_clock::now();
  optimizer_->zero_grad();
  const torch::Tensor logits = model_.forward(images_).to(torch::kFloat);
  torch::nn::functional::cross_entropy(logits, labels_).backward();
  optimizer_->step();
  if (!images_.is_cpu()) wait_for(model_.ptr()->parameters().front());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mpi4dl::baseline
