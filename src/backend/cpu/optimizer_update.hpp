#pragma once

#include "backend/backend.hpp"

// The functions of the same names of Backend, each in one pass over memory: an operator of libtorch
// would take another for each of its steps. Vectors are dense.
namespace mpi4dl::cpu {

void add_scaled(const at::Tensor& sum, const at::Tensor& elements, double scale);
void update_running(const at::Tensor& running, const at::Tensor& sum, const at::Tensor& count,
                    double momentum);
void sgd(const SgdStep& step, const at::Tensor& values, const at::Tensor& gradients,
         const at::Tensor& momentum_buffer);
void adam(const AdamStep& step, const at::Tensor& values, const at::Tensor& gradients,
          const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq);

}  // namespace mpi4dl::cpu
