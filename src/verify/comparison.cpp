#include "verify/comparison.hpp"

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

constexpr double kVisible = 1e-9;

/// Returns what the error of a gradient or parameter, which is part of a whole, is measured by.
double scale_of(double norm, double whole) {
  constexpr double kSmall = 1e-6;
  return norm < kVisible * whole ? whole : std::max(norm, kSmall * whole);
}

/// Returns what the error of a statistic is measured by. A mean that is nothing beside the standard
/// deviation is a true zero, such as that of a 1x1 convolution that reads a batch norm without
/// bias.
double scale_of_statistic(const std::string& name, const TensorMap& statistics) {
  const double norm = length_of(statistics.at(name));
  const std::string mean = "running_mean";
  if (!name.ends_with(mean)) return norm;
  const auto variance = statistics.find(name.substr(0, name.size() - mean.size()) + "running_var");
  if (variance == statistics.end()) return norm;
  const double deviation = length_of(variance->second.sqrt());
  return norm < kVisible * deviation ? deviation : norm;
}

void check_names(const TensorMap& result, const TensorMap& expected) {
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  ensure(std::equal(result.begin(), result.end(), expected.begin(), expected.end(), same),
         "{} tensors cannot be compared with {} others", result.size(), expected.size());
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

  void add_parts(const std::string& what, const TensorMap& result, const TensorMap& expected) {
    check_names(result, expected);
    const double whole = total_norm(expected);
    for (const auto& [name, values] : expected)
      add(what + name, distance(result.at(name), values), scale_of(length_of(values), whole));
  }

  const Comparison& found() const { return found_; }

 private:
  Comparison found_;
};

}  // namespace

Comparison compare(const StepResult& result, const StepResult& expected) {
  Collector errors;
  errors.add("loss", std::abs(result.loss - expected.loss), std::abs(expected.loss));
  errors.add("output", result.logits, expected.logits);
  errors.add_parts("gradient of ", result.gradients, expected.gradients);
  errors.add_parts("values of ", result.parameters, expected.parameters);
  check_names(result.statistics, expected.statistics);
  for (const auto& [name, values] : expected.statistics)
    errors.add("statistics of " + name, distance(result.statistics.at(name), values),
               scale_of_statistic(name, expected.statistics));
  return errors.found();
}

}  // namespace mpi4dl
