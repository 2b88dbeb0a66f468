#include "baseline/gemm.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "baseline/device.hpp"

namespace mpi4dl::baseline {
namespace {

/// Returns the seconds of the product of two square matrices.
double seconds_of(int64_t side, c10::ScalarType type, at::Device device) {
  const auto last = at::MemoryFormat::ChannelsLast;
  // With fewer images, and one thread, libtorch would prefer BLAS to oneDNN.
  const at::Tensor pixels = at::rand({16, side, 8, side / 128}).to(device, type).contiguous(last);
  const at::Tensor weights = at::rand({side, side, 1, 1}).to(device, type).contiguous(last);
  wait_for(at::conv2d(pixels, weights));
  const auto start = std::chrono::steady_clock::now();
  wait_for(at::conv2d(pixels, weights));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double measure_gemm(c10::ScalarType type, at::Device device) {
  constexpr double kLongEnough = 0.03;
  double best = 0, seconds = 0;
  for (int64_t side = 256; side <= 2048 && seconds < kLongEnough; side *= 2) {
    seconds = seconds_of(side, type, device);
    const auto length = static_cast<double>(side);
    best = std::max(best, 2e-9 * length * length * length / seconds);
  }
  return best;
}

}  // namespace mpi4dl::baseline
