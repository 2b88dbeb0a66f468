#include "support/whole_graph.hpp"

#include <ATen/ATen.h>

#include "base/error.hpp"

namespace mpi4dl::testing {
namespace {

/// One node on whole tensors.
struct Evaluation {
  std::vector<at::Tensor> inputs, parameters;
  const Extents& space;  // of the result
  bool training;

  const at::Tensor& x() const { return inputs[0]; }
  bool volume() const { return x().dim() == 5; }
  Extents each(const Extents& values, int64_t otherwise) const {
    return values.empty() ? Extents(x().dim() - 2, otherwise) : values;
  }
  at::Tensor bias(bool present) const { return present ? parameters[1] : at::Tensor(); }

  at::Tensor operator()(const Convolution& op) const {
    const Extents stride = each(op.stride, 1), padding = each(op.padding, 0);
    const Extents dilation = each(op.dilation, 1);
    const auto& weight = parameters[0];
    return volume() ? at::conv3d(x(), weight, bias(op.bias), stride, padding, dilation, op.groups)
                    : at::conv2d(x(), weight, bias(op.bias), stride, padding, dilation, op.groups);
  }

  at::Tensor operator()(const TransposedConvolution& op) const {
    const Extents stride = each(op.stride, 1), padding = each(op.padding, 0);
    const Extents dilation = each(op.dilation, 1), extra = each(op.output_padding, 0);
    const auto& weight = parameters[0];
    return volume() ? at::conv_transpose3d(x(), weight, bias(op.bias), stride, padding, extra,
                                           op.groups, dilation)
                    : at::conv_transpose2d(x(), weight, bias(op.bias), stride, padding, extra,
                                           op.groups, dilation);
  }

  at::Tensor operator()(const BatchNorm& op) const {
    return at::batch_norm(x(), parameters[0], parameters[1], parameters[2], parameters[3], training,
                          op.momentum, op.eps, /*cudnn_enabled=*/false);
  }

  at::Tensor operator()(const GroupNorm& op) const {
    return at::group_norm(x(), op.groups, parameters[0], parameters[1], op.eps);
  }

  at::Tensor operator()(const MaxPool& op) const {
    const Extents stride = op.stride.empty() ? op.kernel : op.stride;
    const Extents padding = each(op.padding, 0), dilation = each(op.dilation, 1);
    return volume() ? at::max_pool3d(x(), op.kernel, stride, padding, dilation, op.ceil_mode)
                    : at::max_pool2d(x(), op.kernel, stride, padding, dilation, op.ceil_mode);
  }

  at::Tensor operator()(const AvgPool& op) const {
    const Extents stride = op.stride.empty() ? op.kernel : op.stride;
    const Extents padding = each(op.padding, 0);
    const bool count = op.count_include_pad;
    return volume() ? at::avg_pool3d(x(), op.kernel, stride, padding, op.ceil_mode, count)
                    : at::avg_pool2d(x(), op.kernel, stride, padding, op.ceil_mode, count);
  }

  at::Tensor operator()(const GlobalAvgPool&) const {
    const Extents one = each({}, 1);
    return (volume() ? at::adaptive_avg_pool3d(x(), one) : at::adaptive_avg_pool2d(x(), one))
        .flatten(1);
  }

  at::Tensor operator()(const Upsample& op) const {
    if (op.mode == Interpolation::bilinear)
      return at::upsample_bilinear2d(x(), space, /*align_corners=*/false);
    return volume() ? at::upsample_nearest3d(x(), space) : at::upsample_nearest2d(x(), space);
  }

  at::Tensor operator()(const Add&) const {
    at::Tensor sum = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) sum = sum + inputs[i];
    return sum;
  }

  at::Tensor operator()(const Linear& op) const {
    return at::linear(x(), parameters[0], bias(op.bias));
  }

  at::Tensor operator()(const Relu&) const { return at::relu(x()); }
  at::Tensor operator()(const Concat&) const { return at::cat(inputs, 1); }
  at::Tensor operator()(const Flatten&) const { return x().flatten(1); }
  at::Tensor operator()(const Identity&) const { return x(); }
  at::Tensor operator()(const Dropout&) const {
    ensure(!training, "dropout has no whole reference in training");
    return x();
  }
  at::Tensor operator()(const Input&) const { throw Error("an input is given, not computed"); }
};

}  // namespace

at::Tensor evaluate_whole(const Graph& graph, const at::Tensor& image,
                          const std::map<std::string, at::Tensor>& parameters, bool training) {
  std::vector<at::Tensor> values{image};
  for (size_t id = 1; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    Evaluation evaluation{
        .inputs = {}, .parameters = {}, .space = node.shape.space, .training = training};
    for (const int from : node.inputs) evaluation.inputs.push_back(values[from]);
    for (const Parameter& parameter : node.parameters)
      evaluation.parameters.push_back(parameters.at(parameter.name));
    values.push_back(std::visit(evaluation, node.op));
  }
  return values[graph.output()];
}

}  // namespace mpi4dl::testing
