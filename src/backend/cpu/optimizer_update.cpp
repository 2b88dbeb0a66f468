#include "backend/cpu/optimizer_update.hpp"

#include <ATen/Parallel.h>

#include <cmath>

#include "backend/cpu/tuning.hpp"
#include "backend/cpu/vectorised.hpp"
#include "backend/precision.hpp"
#include "base/expects.hpp"

namespace mpi4dl::cpu {
namespace {

/// Calls `update(elements, begin, end)` for pieces of a vector.
template <typename Update>
void in_one_pass(const at::Tensor& values, const Update& update) {
  with_elements(values, [&](auto* elements) {
    at::parallel_for(
        0, values.numel(), kTuning.elements_per_thread,
        [&](int64_t begin, int64_t end) { vectorised([&] { update(elements, begin, end); }); });
  });
}

/// Returns true for vectors of as many elements, of one type, that are dense.
bool alike(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.numel() == b.numel() && a.is_contiguous() &&
         b.is_contiguous();
}

}  // namespace

void add_scaled(const at::Tensor& sum, const at::Tensor& elements, double scale) {
  expects(elements.scalar_type() == at::kDouble && elements.numel() == sum.numel(),
          "there is a float64 for each sum");
  expects(elements.is_contiguous() && sum.is_contiguous(), "vectors are dense");
  with_elements(sum, [&]<typename T>(T* to) {
    const double* from = elements.data_ptr<double>();
    for (int64_t i = 0; i < sum.numel(); ++i) to[i] += static_cast<T>(scale * from[i]);
  });
}

void update_running(const at::Tensor& running, const at::Tensor& sum, const at::Tensor& count,
                    double momentum) {
  expects(alike(running, sum), "there is a sum for each running statistic");
  expects(count.scalar_type() == running.scalar_type() && count.numel() == 1,
          "the count is one number of their type");
  with_elements(running, [&]<typename T>(T* value) {
    const T* sums = sum.data_ptr<T>();
    const double measured = *count.data_ptr<T>();
    for (int64_t i = 0; measured > 0 && i < running.numel(); ++i)
      value[i] = static_cast<T>((1 - momentum) * value[i] + momentum * (sums[i] / measured));
  });
}

void sgd(const SgdStep& step, const at::Tensor& values, const at::Tensor& gradients,
         const at::Tensor& momentum_buffer) {
  expects(alike(values, gradients), "there is a gradient for each value");
  expects(!momentum_buffer.defined() || alike(values, momentum_buffer),
          "there is a momentum for each value, or for none");
  in_one_pass(values, [&]<typename T>(T* value, int64_t begin, int64_t end) {
    const T* gradient = gradients.data_ptr<T>();
    T* buffer = momentum_buffer.defined() ? momentum_buffer.data_ptr<T>() : nullptr;
    const T rate = step.learning_rate, size = step.scale, decay = step.weight_decay,
            momentum = step.momentum;
    MPI4DL_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      T direction = gradient[i] * size + value[i] * decay;
      if (buffer != nullptr) direction = buffer[i] = buffer[i] * momentum + direction;
      value[i] -= rate * direction;
    }
  });
}

void adam(const AdamStep& step, const at::Tensor& values, const at::Tensor& gradients,
          const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq) {
  expects(alike(values, gradients), "there is a gradient for each value");
  expects(alike(values, exp_avg) && alike(values, exp_avg_sq), "there are moments for each value");
  const AdamFactors factors(step);
  in_one_pass(values, [&]<typename T>(T* value, int64_t begin, int64_t end) {
    const T* gradient = gradients.data_ptr<T>();
    T* average = exp_avg.data_ptr<T>();
    T* average_sq = exp_avg_sq.data_ptr<T>();
    const T size = step.scale, decay = factors.decay, shrink = factors.shrink, rate = factors.rate,
            spread = factors.spread, epsilon = AdamFactors::epsilon, beta1 = AdamFactors::beta1,
            beta2 = AdamFactors::beta2, fresh1 = 1 - AdamFactors::beta1,
            fresh2 = 1 - AdamFactors::beta2;
    MPI4DL_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const T direction = gradient[i] * size + value[i] * decay;
      average[i] = average[i] * beta1 + direction * fresh1;
      average_sq[i] = average_sq[i] * beta2 + direction * direction * fresh2;
      value[i] =
          value[i] * shrink - rate * average[i] / (std::sqrt(average_sq[i]) * spread + epsilon);
    }
  });
}

}  // namespace mpi4dl::cpu
