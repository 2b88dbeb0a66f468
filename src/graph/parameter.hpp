#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/shape.hpp"

namespace mpi4dl {

/// Says how a parameter starts.
enum class Init {
  uniform_fan_in,  ///< uniform in +-1/sqrt(fan_in), as torch::nn starts convolutions and linears
  ones,
  zeros,
  quarters,  ///< 1/4, as torch::nn starts PReLU
};

/// Says what training does with a parameter.
enum class ParameterKind {
  trained,
  frozen,     ///< used as it is: it has no gradient, no optimizer state, and nothing is reduced
  statistic,  ///< moved by what is measured in forward, as batch norm's running mean
};

/// Describes a tensor that belongs to a graph. Its name is its identity: nodes that name the same
/// parameter share it, and their gradients add up.
struct Parameter {
  std::string name;  ///< stable and dotted: "stage0.block1.r2.conv.weight"
  std::vector<int64_t> shape;
  Init init = Init::zeros;
  int64_t fan_in = 1;
  ParameterKind kind = ParameterKind::trained;
  double momentum = 0;  ///< of a statistic: the share of the new value

  bool trained() const { return kind == ParameterKind::trained; }
  bool statistic() const { return kind == ParameterKind::statistic; }
  int64_t elements() const { return positions(shape); }
};

/// Returns whether a parameter may have this name. Checkpoints and files of PyTorch have tensors
/// beside the parameters, and know them by their names: the state of an optimizer
/// ("exp_avg/NAME"), what a model carries along ("carried/NAME"), and the number of batches that a
/// batch norm counts ("NAME.num_batches_tracked").
bool is_parameter_name(const std::string& name);

/// Returns the weight and perhaps the bias of a convolution or linear layer; both start in the same
/// range.
std::vector<Parameter> weight_and_bias(const std::vector<int64_t>& shape, int64_t fan_in, bool bias,
                                       int64_t outputs);

/// Returns the weight and bias of a norm.
std::vector<Parameter> scale_and_shift(int64_t channels);

/// Returns the shape (first, second, kernel...).
std::vector<int64_t> weight_shape(int64_t first, int64_t second, const Extents& kernel);

}  // namespace mpi4dl
