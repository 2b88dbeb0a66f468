// The kernels of convolutions against libtorch's, which are oneDNN's, on one thread and in turns:
// images with channels side by side, in float32 or bfloat16. Prints the best GFLOP/s of each.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/processor.hpp"
#include "ops/kernels/convolution.hpp"

namespace {

using namespace mpi4dl;

constexpr int kTurns = 8;

struct Shape {
  int64_t in, out, size, kernel;
  double operations() const {
    return 2.0 * static_cast<double>(in * out * size * size * kernel * kernel);
  }
};

/// The same task done by either side.
struct Task {
  std::function<void()> theirs, ours;
};

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Two columns: GFLOP/s of theirs and of ours.
std::string race(const Task& task, double operations) {
  double theirs = 1e9, ours = 1e9;
  for (int turn = 0; turn < kTurns; ++turn) {
    theirs = std::min(theirs, seconds(task.theirs));
    ours = std::min(ours, seconds(task.ours));
  }
  return fmt::format(" {:.0f} | {:.0f} |", operations / theirs * 1e-9, operations / ours * 1e-9);
}

at::Tensor random(at::IntArrayRef shape, c10::ScalarType type) {
  return at::rand(shape).to(type).contiguous(at::MemoryFormat::ChannelsLast);
}

void race(const Shape& shape, c10::ScalarType type) {
  const int64_t padding = shape.kernel / 2;
  const Window window{shape.kernel, 1, padding, 1};
  const ImageWindows windows{window, window};
  const std::vector<int64_t> one{1, 1}, zero{0, 0}, pad{padding, padding};
  const at::Tensor x = random({1, shape.in, shape.size, shape.size}, type);
  const at::Tensor dy = random({1, shape.out, shape.size, shape.size}, type);
  const at::Tensor y = at::empty_like(dy), dx = at::empty_like(x);
  const at::Tensor weight = random({shape.out, shape.in, shape.kernel, shape.kernel}, type);
  const at::Tensor sums = at::zeros_like(weight, at::kFloat);
  const auto back = [&](bool of_input) {
    at::convolution_backward(dy, x, weight, c10::nullopt, one, pad, one, false, zero, 1,
                             {of_input, !of_input, false});
  };
  const std::vector<Task> tasks{
      {[&] { at::convolution(x, weight, {}, one, pad, one, false, zero, 1); },
       [&] { convolve(x, weight, {}, windows, {}, y); }},
      {[&] { back(true); }, [&] { convolve_back(dy, weight, windows, dx); }},
      {[&] { back(false); }, [&] { add_weight_gradient(x, dy, windows, sums); }}};
  std::string row =
      fmt::format("| {0}×{0}, {1} → {2}, {3}² |", shape.kernel, shape.in, shape.out, shape.size);
  for (const Task& task : tasks) row += race(task, shape.operations());
  fmt::print("{}\n", row);
}

}  // namespace

int main(int argc, char** argv) {
  keep_onednn_from_matrix_unit_of_unknown_size();
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  const bool half = argc > 1 && std::string(argv[1]) == "bfloat16";
  if (argc > 2 || (argc == 2 && !half)) {
    fmt::print(stderr, "usage: bench-convolutions [bfloat16]\n");
    return 2;
  }
  fmt::print(
      "| window, channels, size | forward: libtorch | ours | input: libtorch | ours | weights: "
      "libtorch | ours |\n|---|---|---|---|---|---|---|\n");
  for (const Shape& shape : std::vector<Shape>{{64, 16, 256, 3},
                                               {16, 16, 256, 3},
                                               {128, 64, 128, 3},
                                               {64, 64, 128, 3},
                                               {256, 128, 64, 3},
                                               {128, 128, 64, 3},
                                               {16, 64, 256, 1},
                                               {64, 128, 128, 1},
                                               {128, 256, 64, 1},
                                               {64, 64, 16, 1}})
    race(shape, half ? at::kBFloat16 : at::kFloat);
}
