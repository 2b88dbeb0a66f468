#include "support/whole_graph.hpp"

#include <ATen/ATen.h>

#include "support/operator_table.hpp"

namespace mpi4dl::testing {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

/// Computes a weight as PyTorch's own functions do: batch norm and a variance of libtorch's.
at::Tensor weight_of(const Formula& formula, const Tensors& parameters) {
  using enum FormulaFunction;
  std::vector<at::Tensor> x;
  for (const Formula& operand : formula.operands) x.push_back(weight_of(operand, parameters));
  const at::IntArrayRef axes = formula.axes;
  switch (formula.function) {
    case parameter:
      return parameters.at(formula.name);
    case number:
      return at::full({1}, formula.number, at::kDouble);
    case reshape:
      return x[0].reshape(formula.shape);
    case add:
      return x[0] + x[1];
    case subtract:
      return x[0] - x[1];
    case multiply:
      return x[0] * x[1];
    case divide:
      return x[0] / x[1];
    case power:
      return x[0].pow(formula.number);
    case exp:
      return x[0].exp();
    case sum:
      return x[0].sum(axes, true);
    case mean:
      return x[0].mean(axes, true);
    case variance:
      return x[0].var(axes, /*unbiased=*/formula.number == 1, true);
    case norm:
      return x[0].square().sum(axes, true).sqrt();
    case standardise: {
      const at::Tensor variance = x[0].var(axes, /*unbiased=*/false, true);
      return (x[0] - x[0].mean(axes, true)) / (variance + formula.number).sqrt();
    }
  }
  return {};
}

}  // namespace

at::Tensor evaluate_whole(const Graph& graph, const at::Tensor& image,
                          const std::map<std::string, at::Tensor>& parameters, bool training) {
  std::vector<at::Tensor> values{image};
  for (size_t id = 1; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    WholeNode whole{
        .inputs = {}, .parameters = {}, .space = node.shape.space, .training = training};
    for (const int from : node.inputs) whole.inputs.push_back(values[from]);
    for (const auto& [parameter, formula] : node.weights)
      whole.parameters.push_back(formula ? weight_of(*formula, parameters)
                                         : parameters.at(parameter.name));
    values.push_back(row_of(node.op).whole(whole, node.op));
  }
  return values[graph.output()];
}

}  // namespace mpi4dl::testing
