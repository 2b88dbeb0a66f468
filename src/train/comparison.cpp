#include "train/comparison.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

double length_of(const at::Tensor& values) {
  return values.to(at::kDouble).norm().item<double>();
}

double distance(const at::Tensor& result, const at::Tensor& expected) {
  return length_of(result.to(at::kDouble) - expected.to(at::kDouble));
}

using TensorMap = std::map<std::string, at::Tensor>;

double total_norm(const TensorMap& tensors) {
  double squares = 0;
  for (const auto& [name, values] : tensors) squares += std::pow(length_of(values), 2);
  return std::sqrt(squares);
}

/// What an error of a gradient is measured by.
double gradient_scale(double norm, double whole) {
  constexpr double kVisible = 1e-9, kSmall = 1e-6;
  return norm < kVisible * whole ? whole : std::max(norm, kSmall * whole);
}

class Collector {
 public:
  void add(const std::string& name, double apart, double scale) {
    const double error = apart == 0 ? 0 : apart / scale;
    const bool worse = std::isnan(error) || error > found_.max_relative_error;
    if (std::isnan(found_.max_relative_error) || !worse) return;
    found_ = {error, name};
  }

  void add(const std::string& name, const at::Tensor& result, const at::Tensor& expected) {
    add(name, distance(result, expected), length_of(expected));
  }

  const Comparison& found() const { return found_; }

 private:
  Comparison found_;
};

void check_names(const TensorMap& result, const TensorMap& expected) {
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  ensure(std::equal(result.begin(), result.end(), expected.begin(), expected.end(), same),
         "{} tensors cannot be compared with {} others", result.size(), expected.size());
}

}  // namespace

Comparison compare(const StepResult& result, const StepResult& expected) {
  Collector errors;
  errors.add("loss", std::abs(result.loss - expected.loss), std::abs(expected.loss));
  errors.add("output", result.logits, expected.logits);
  check_names(result.gradients, expected.gradients);
  const double whole = total_norm(expected.gradients);
  for (const auto& [name, values] : expected.gradients)
    errors.add("gradient of " + name, distance(result.gradients.at(name), values),
               gradient_scale(length_of(values), whole));
  check_names(result.statistics, expected.statistics);
  for (const auto& [name, values] : expected.statistics)
    errors.add("statistics of " + name, result.statistics.at(name), values);
  check_names(result.parameters, expected.parameters);
  for (const auto& [name, values] : expected.parameters)
    errors.add("values of " + name, result.parameters.at(name), values);
  return errors.found();
}

}  // namespace mpi4dl
