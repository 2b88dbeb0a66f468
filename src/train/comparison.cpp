#include "train/comparison.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

double length_of(const at::Tensor& values) {
  return values.to(at::kDouble).norm().item<double>();
}

double total_norm(const std::map<std::string, at::Tensor>& tensors) {
  double squares = 0;
  for (const auto& [name, values] : tensors) squares += std::pow(length_of(values), 2);
  return std::sqrt(squares);
}

void add(Comparison& comparison, const std::string& name, const at::Tensor& result,
         const at::Tensor& expected, double least_scale) {
  const double apart = length_of(result.to(at::kDouble) - expected.to(at::kDouble));
  const double error = apart == 0 ? 0 : apart / std::max(length_of(expected), least_scale);
  const bool worse = std::isnan(error) || error > comparison.max_relative_error;
  if (std::isnan(comparison.max_relative_error) || !worse) return;
  comparison.max_relative_error = error;
  comparison.worst = name;
}

void add_all(Comparison& comparison, const std::string& what,
             const std::map<std::string, at::Tensor>& result,
             const std::map<std::string, at::Tensor>& expected, double least_scale) {
  ensure(result.size() == expected.size(), "{} tensors of {} cannot be compared with {}",
         result.size(), what, expected.size());
  for (const auto& [name, values] : expected)
    add(comparison, what + " of " + name, result.at(name), values, least_scale);
}

}  // namespace

Comparison compare(const StepResult& result, const StepResult& expected) {
  Comparison comparison;
  add(comparison, "output", result.logits, expected.logits, 0);
  add_all(comparison, "gradient", result.gradients, expected.gradients,
          1e-6 * total_norm(expected.gradients));
  add_all(comparison, "statistics", result.statistics, expected.statistics, 0);
  return comparison;
}

}  // namespace mpi4dl
