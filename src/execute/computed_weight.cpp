#include "execute/computed_weight.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/precision.hpp"
#include "execute/recording.hpp"

namespace mpi4dl {
namespace {

/// Standardises as a layer norm, which keeps its input alone: the axes become the last ones.
at::Tensor standardise(const at::Tensor& a, at::IntArrayRef axes, double eps) {
  std::vector<int64_t> order, places(a.dim()), lengths;
  for (int64_t axis = 0; axis < a.dim(); ++axis)
    if (std::ranges::find(axes, axis) == axes.end()) order.push_back(axis);
  for (const int64_t axis : axes) {
    order.push_back(axis);
    lengths.push_back(a.size(axis));
  }
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<int64_t>(i);
  return at::layer_norm(a.permute(order), lengths, {}, {}, eps).permute(places);
}

/// Applies a function to its operands, of which the second one may be undefined.
at::Tensor apply(const Formula& formula, const at::Tensor& a, const at::Tensor& b) {
  const at::IntArrayRef axes = formula.axes;
  switch (formula.function) {
    case FormulaFunction::parameter:
    case FormulaFunction::number:
      break;
    case FormulaFunction::reshape:
      return a.reshape(formula.shape);
    case FormulaFunction::add:
      return a + b;
    case FormulaFunction::subtract:
      return a - b;
    case FormulaFunction::multiply:
      return a * b;
    case FormulaFunction::divide:
      return a / b;
    case FormulaFunction::power:
      return a.pow(formula.number);
    case FormulaFunction::exp:
      return a.exp();
    case FormulaFunction::sum:
      return a.sum(axes, /*keepdim=*/true);
    case FormulaFunction::mean:
      return a.mean(axes, /*keepdim=*/true);
    case FormulaFunction::norm:
      return at::norm(a, 2, axes, /*keepdim=*/true);
    case FormulaFunction::variance: {
      int64_t count = 1;
      for (const int64_t axis : axes) count *= a.size(axis);
      const at::Tensor squares = (a - a.mean(axes, true)).square().sum(axes, true);
      return squares / (static_cast<double>(count) - formula.number);
    }
    case FormulaFunction::standardise:
      return standardise(a, axes, formula.number);
  }
  return a;
}

}  // namespace

at::Tensor evaluate(const Formula& formula, const std::map<std::string, at::Tensor>& parameters) {
  if (formula.function == FormulaFunction::parameter) return parameters.at(formula.name);
  if (formula.function == FormulaFunction::number)
    return at::full({1}, formula.number, parameters.begin()->second.options());
  const at::Tensor a = evaluate(formula.operands[0], parameters);
  const at::Tensor b =
      formula.operands.size() > 1 ? evaluate(formula.operands[1], parameters) : at::Tensor();
  return apply(formula, a, b);
}

ComputedWeight::ComputedWeight(Formula formula, std::map<std::string, Source> sources,
                               at::Tensor value)
    : formula_(std::move(formula)), sources_(std::move(sources)), value_(std::move(value)) {
  if (is_trained(formula_))
    sum_ = at::zeros_like(value_, value_.options().dtype(wide_type(value_.scalar_type())));
}

void ComputedWeight::update() {
  std::map<std::string, at::Tensor> values;
  for (const auto& [name, source] : sources_)
    values[name] = source.value.to(wide_type(value_.scalar_type()));
  value_.copy_(evaluate(formula_, values));
}

void ComputedWeight::begin() {
  if (!std::exchange(begun_, true) && sum_.defined()) sum_.zero_();
}

void ComputedWeight::propagate(const Backend& backend) {
  if (!std::exchange(begun_, false) || !sum_.defined()) return;
  std::map<std::string, at::Tensor> leaves;
  std::vector<at::Tensor> wanted, sums;
  at::Tensor weight;
  {
    const Recording recording;
    for (const auto& [name, source] : sources_) {
      leaves[name] =
          source.value.detach().to(sum_.scalar_type()).requires_grad_(source.sum.defined());
      if (!source.sum.defined()) continue;
      wanted.push_back(leaves[name]);
      sums.push_back(source.sum);
    }
    weight = evaluate(formula_, leaves);
  }
  const auto found = torch::autograd::grad({weight}, wanted, {sum_});
  for (size_t i = 0; i < sums.size(); ++i) backend.add_scaled(sums[i], found[i], 1);
}

}  // namespace mpi4dl
