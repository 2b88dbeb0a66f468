// The device computes what the CPU computes, to the bit, wherever the operator comes from.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>
#include <functional>

#include "support/simulated_device.hpp"

namespace mpi4dl::simulated {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// Makes what a case computes with: the same numbers on the CPU and on the device.
class Bench {
 public:
  Bench(c10::Device device, at::ScalarType dtype) : device_(device), dtype_(dtype) {}

  Tensor random(at::IntArrayRef sizes) {
    return at::randn(sizes, generator_, at::kDouble).to(dtype_).to(device_);
  }
  /// Returns a view into a larger tensor, with gaps between rows and channels.
  Tensor view(int64_t n, int64_t c, int64_t h, int64_t w) {
    return random({n, c + 1, h + 3, w + 2}).slice(1, 1).slice(2, 2, -1).slice(3, 0, -2);
  }
  Tensor indices(std::vector<int64_t> values) { return at::tensor(values).to(device_); }

 private:
  c10::Device device_;
  at::ScalarType dtype_;
  at::Generator generator_ = at::detail::createCPUGenerator(7);
};

struct Case {
  const char* name;
  std::function<Tensors(Bench&)> run;
  bool half = true;  // the CPU has it in bfloat16 too
  bool needs_autograd = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

Tensors list(std::tuple<Tensor, Tensor, Tensor> results) {
  return {std::get<0>(results), std::get<1>(results), std::get<2>(results)};
}
Tensors list(std::tuple<Tensor, Tensor> results) {
  return {std::get<0>(results), std::get<1>(results)};
}

Tensors convolution_backward(Bench& b, const Tensor& input, const Tensor& weight) {
  const Tensor output = at::conv2d(input, weight, {}, 2, 1);
  return list(at::convolution_backward(b.random(output.sizes()), input, weight,
                                       at::IntArrayRef{weight.size(0)}, {2, 2}, {1, 1}, {1, 1},
                                       false, {0, 0}, 1, {true, true, true}));
}

Tensors batch_norm(Bench& b, bool training) {
  Tensor mean = b.random({3});
  Tensor variance = b.random({3}).abs().add_(1);
  Tensors results = list(at::native_batch_norm(b.random({2, 3, 5, 4}), b.random({3}), b.random({3}),
                                               mean, variance, training, 0.1, 1e-5));
  return {results[0], mean, variance};
}

Tensors batch_norm_backward(Bench& b) {
  const Tensor x = b.random({2, 3, 5, 4}), weight = b.random({3});
  const Tensors forward =
      list(at::native_batch_norm(x, weight, b.random({3}), {}, {}, true, 0.1, 1e-5));
  return list(at::native_batch_norm_backward(b.random(x.sizes()), x, weight, {}, {}, forward[1],
                                             forward[2], true, 1e-5, {true, true, true}));
}

Tensors max_pool(Bench& b) {
  const Tensor x = b.random({1, 3, 8, 8});
  Tensors results = list(at::max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1}));
  results.push_back(at::max_pool2d_with_indices_backward(
      b.random(results[0].sizes()), x, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false, results[1]));
  return results;
}

Tensors average_pool(Bench& b) {
  const Tensor x = b.random({1, 3, 8, 8});
  const Tensor y = at::avg_pool2d(x, {3, 3}, {2, 2}, {1, 1}, false, false);
  return {y, at::avg_pool2d_backward(b.random(y.sizes()), x, {3, 3}, {2, 2}, {1, 1}, false, false,
                                     c10::nullopt)};
}

Tensors written_out(Bench& b) {
  const Tensor x = b.random({4, 5}), y = b.random({4, 5});
  Tensor sum = at::empty({0}, x.options()), part = b.random({6, 9});
  at::add_out(sum, x, y, 2);  // which grows
  Tensor strip = part.slice(0, 1, 5).slice(1, 2, 7);
  at::clamp_min_out(strip, x, 0.25);
  return {sum, part};
}

Tensors sgd(Bench& b) {
  Tensor weight = b.random({7, 3}), momentum = b.random({7, 3});
  Tensor gradient = b.random({7, 3});
  gradient.add_(weight, 1e-4);
  momentum.mul_(0.9).add_(gradient);
  weight.add_(momentum, -0.1);
  return {weight, momentum};
}

Tensors adam(Bench& b) {
  Tensor weight = b.random({7, 3}), first = b.random({7, 3}), second = b.random({7, 3}).abs();
  const Tensor gradient = b.random({7, 3});
  first.mul_(0.9).add_(gradient, 0.1);
  second.mul_(0.999).addcmul_(gradient, gradient, 0.001);
  weight.addcdiv_(first, second.sqrt().add_(1e-8), -0.01);
  Tensors all{weight, first};
  at::_foreach_mul_(all, 0.5);
  return {weight, first, second};
}

Tensors gradients(Bench& b) {
  Tensor x = b.random({2, 3, 8, 8}).requires_grad_(),
         weight = b.random({4, 3, 3, 3}).requires_grad_();
  const Tensor hidden = at::relu(at::conv2d(x.slice(3, 1, 7), weight, {}, 1, 1));
  const Tensor loss = at::log_softmax(at::max_pool2d(hidden, {2, 2}).flatten(1), 1).sum();
  return torch::autograd::grad({loss}, {x, weight});
}

Tensors strided(Bench& b) {
  Tensor x = b.random({4, 6, 5});
  Tensor view = x.permute({2, 0, 1}).slice(2, 1, 6, 2);
  view.mul_(3);
  x.as_strided({3, 3}, {7, 2}, 5).add_(1);
  return {x, view.reshape({-1}), x.view({24, 5}).t() + 1};
}

std::vector<Case> cases() {
  return {
      {"convolution",
       [](Bench& b) {
         return Tensors{
             at::conv2d(b.random({2, 3, 9, 8}), b.random({4, 3, 3, 3}), b.random({4}), 2, 1)};
       }},
      {"grouped convolution",
       [](Bench& b) {
         return Tensors{at::conv2d(b.random({1, 4, 6, 6}), b.random({4, 2, 3, 3}), {}, 1, 1, 2, 2)};
       }},
      {"transposed convolution",
       [](Bench& b) {
         return Tensors{
             at::conv_transpose2d(b.random({1, 3, 5, 4}), b.random({3, 2, 3, 3}), {}, 2)};
       },
       false},
      {"convolution of volumes",
       [](Bench& b) {
         return Tensors{at::conv3d(b.random({1, 2, 4, 5, 6}), b.random({3, 2, 3, 3, 3}))};
       }},
      {"convolution of a view",
       [](Bench& b) { return Tensors{at::conv2d(b.view(1, 3, 7, 6), b.random({4, 3, 3, 3}))}; }},
      {"convolution backward",
       [](Bench& b) {
         return convolution_backward(b, b.random({2, 3, 9, 8}), b.random({4, 3, 3, 3}));
       }},
      {"convolution backward of a view",
       [](Bench& b) {
         return convolution_backward(b, b.view(1, 3, 7, 6), b.random({4, 3, 3, 3}));
       }},
      {"batch norm", [](Bench& b) { return batch_norm(b, true); }},
      {"batch norm at rest", [](Bench& b) { return batch_norm(b, false); }},
      {"batch norm backward", batch_norm_backward},
      {"max pool", max_pool},
      {"average pool", average_pool},
      {"clamp and threshold",
       [](Bench& b) {
         const Tensor x = b.random({3, 4});
         return Tensors{x.clamp_min(0), at::threshold_backward(b.random({3, 4}), x, 0)};
       }},
      {"add",
       [](Bench& b) {
         Tensor x = b.random({3, 4});
         const Tensor y = x + b.random({4});
         x.add_(y, 2).mul_(0.5);
         return Tensors{x, y};
       }},
      {"written out", written_out},
      {"strided views", strided},
      {"channels last",
       [](Bench& b) {
         const Tensor x = b.random({2, 8, 6, 5}).contiguous(at::MemoryFormat::ChannelsLast);
         return Tensors{
             x, at::conv2d(x, b.random({4, 8, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast)),
             at::empty_like(x).copy_(x)};
       }},
      {"pad",
       [](Bench& b) {
         return Tensors{at::constant_pad_nd(b.random({1, 2, 3, 4}), {1, 2, 0, 1}, -1)};
       }},
      {"cat and split",
       [](Bench& b) {
         Tensors parts = at::cat({b.random({2, 3}), b.random({2, 4})}, 1).split(3, 1);
         parts[0].add_(parts[1]);
         return parts;
       }},
      {"select",
       [](Bench& b) {
         const Tensor x = b.random({5, 3});
         return Tensors{x.index_select(0, b.indices({4, 0, 4})),
                        x.gather(1, b.indices({2, 0, 1}).view({3, 1})),
                        x.index({b.indices({1, 3})}), x.masked_select(x > 0), at::nonzero(x > 0)};
       }},
      {"scatter",
       [](Bench& b) {
         return Tensors{
             b.random({5, 3}).scatter_add_(0, b.indices({0, 4, 4}).view({1, 3}), b.random({1, 3}))};
       }},
      {"linear",
       [](Bench& b) {
         return Tensors{at::linear(b.random({4, 6}), b.random({3, 6}), b.random({3})),
                        b.random({4, 5}).mm(b.random({5, 2}))};
       }},
      {"softmax",
       [](Bench& b) {
         const Tensor x = at::log_softmax(b.random({4, 6}), 1);
         return Tensors{x, x.argmax(1), at::nll_loss(x, b.indices({0, 5, 2, 3}))};
       }},
      {"sums",
       [](Bench& b) {
         const Tensor x = b.random({4, 6, 3});
         Tensors results = list(at::var_mean(x, at::IntArrayRef{0, 2}, false));
         results.insert(results.end(), {x.sum(), x.sum(1), x.norm(), x.to(at::kDouble).sum(0)});
         return results;
       }},
      {"values",
       [](Bench& b) {
         const Tensor x = b.random({4});
         return Tensors{at::scalar_tensor(x[2].item(), x.options()),
                        at::scalar_tensor(at::equal(x, x.clone()), x.options()),
                        at::scalar_tensor(at::equal(x, x + 1), x.options())};
       }},
      {"upsampling",
       [](Bench& b) { return Tensors{at::upsample_nearest2d(b.random({1, 2, 3, 4}), {6, 8})}; }},
      {"sgd", sgd},
      {"adam", adam},
      {.name = "gradients", .run = gradients, .needs_autograd = true},
  };
}

void expect_same_bits(const Tensor& expected, const Tensor& actual) {
  EXPECT_EQ(expected.sizes(), actual.sizes());
  EXPECT_EQ(expected.strides(), actual.strides());
  EXPECT_EQ(expected.scalar_type(), actual.scalar_type());
  const Tensor a = expected.detach().contiguous();
  const Tensor b = actual.detach().cpu().contiguous();
  EXPECT_EQ(std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()), 0) << expected << actual;
}

void expect_like_cpu(const Case& c, at::ScalarType dtype) {
  Bench on_cpu(at::kCPU, dtype), on_device(device(), dtype);
  const Tensors expected = c.run(on_cpu), actual = c.run(on_device);
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) expect_same_bits(expected[i], actual[i]);
}

class Operators : public ::testing::TestWithParam<std::tuple<Case, at::ScalarType>> {};

TEST_P(Operators, ComputeWhatTheCpuComputes) {
  const auto& [c, dtype] = GetParam();
  expect_like_cpu(c, dtype);
}

std::vector<std::tuple<Case, at::ScalarType>> in_all_types() {
  std::vector<std::tuple<Case, at::ScalarType>> all;
  for (const Case& c : cases())
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16})
      if (c.half || dtype != at::kBFloat16) all.emplace_back(c, dtype);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Operators, ::testing::ValuesIn(in_all_types()));

/// So runs who needs no gradients, or computes them himself.
TEST(Operators, ComputeTheSameBelowAutograd) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    if (!c.needs_autograd) expect_like_cpu(c, at::kFloat);
  }
}

TEST(Operators, LeaveNothingOnTheCpu) {
  Bench b(device(), at::kFloat);
  for (const Case& c : cases()) {
    for (const Tensor& result : c.run(b)) EXPECT_EQ(result.device(), device()) << c.name;
  }
}

}  // namespace
}  // namespace mpi4dl::simulated
