#pragma once

#include <array>

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Names a function of one number x, with one or two options a and b.
enum class PointwiseFunction {
  sigmoid,      ///< 1 / (1 + exp(-x))
  silu,         ///< x * sigmoid(x), also called swish
  tanh,         ///< the hyperbolic tangent
  gelu,         ///< x * P(a normal number < x), by erf
  gelu_tanh,    ///< gelu's approximation by tanh
  hardsigmoid,  ///< x / 6 + 1/2, within [0, 1]
  hardswish,    ///< x * hardsigmoid(x)
  hardtanh,     ///< x within [a, b]; 0 and 6 make ReLU6. Its gradient is 0 at a and b themselves.
  clamp,        ///< the same, with a gradient of 1 at a and b
  leaky_relu,   ///< x, and a * x where that is negative
  elu,          ///< x, and a * (exp(x) - 1) where that is negative
  selu,         ///< elu with the numbers of its paper
  celu,         ///< x, and a * (exp(x / a) - 1) where that is negative
  softplus,     ///< log(1 + exp(a * x)) / a, and x where a * x > b
  mish,         ///< x * tanh(softplus(x))
  log_sigmoid,  ///< log(sigmoid(x))
  exp,          ///< e^x
  abs,          ///< |x|
  scale,        ///< a * x + b
  pow,          ///< x^a
};

template <>
inline constexpr std::array kWords<PointwiseFunction>{
    Word{"sigmoid", PointwiseFunction::sigmoid},
    Word{"silu", PointwiseFunction::silu},
    Word{"tanh", PointwiseFunction::tanh},
    Word{"gelu", PointwiseFunction::gelu},
    Word{"gelu_tanh", PointwiseFunction::gelu_tanh},
    Word{"hardsigmoid", PointwiseFunction::hardsigmoid},
    Word{"hardswish", PointwiseFunction::hardswish},
    Word{"hardtanh", PointwiseFunction::hardtanh},
    Word{"clamp", PointwiseFunction::clamp},
    Word{"leaky_relu", PointwiseFunction::leaky_relu},
    Word{"elu", PointwiseFunction::elu},
    Word{"selu", PointwiseFunction::selu},
    Word{"celu", PointwiseFunction::celu},
    Word{"softplus", PointwiseFunction::softplus},
    Word{"mish", PointwiseFunction::mish},
    Word{"log_sigmoid", PointwiseFunction::log_sigmoid},
    Word{"exp", PointwiseFunction::exp},
    Word{"abs", PointwiseFunction::abs},
    Word{"scale", PointwiseFunction::scale},
    Word{"pow", PointwiseFunction::pow}};

/// Applies a function to each element; ReLU is an operator of its own, which others fuse.
struct Pointwise {
  PointwiseFunction function = PointwiseFunction::sigmoid;
  double a = 0, b = 0;

  static constexpr std::string_view kName = "pointwise";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"function", &Pointwise::function},
                                      Field{"a", &Pointwise::a}, Field{"b", &Pointwise::b}};

  enum class Keeps { nothing, input, output };
  struct Backward {
    Keeps keeps = Keeps::input;  ///< what it reads
    bool multiplies = false;     ///< by the derivative: libtorch has no kernel for all of it
  };
  Backward backward() const {
    switch (function) {
      using enum PointwiseFunction;
      case scale:
        return {Keeps::nothing};
      case sigmoid:
      case tanh:
      case exp:
        return {Keeps::output};
      case clamp:
      case log_sigmoid:
      case abs:
      case pow:
        return {Keeps::input, /*multiplies=*/true};
      case silu:
      case gelu:
      case gelu_tanh:
      case hardsigmoid:
      case hardswish:
      case hardtanh:
      case leaky_relu:
      case elu:
      case selu:
      case celu:
      case softplus:
      case mish:
        return {Keeps::input};
    }
    return {};
  }
  Shape result(const Shapes& inputs) const {
    using enum PointwiseFunction;
    validate((function != hardtanh && function != clamp) || a < b,
             "its smallest value a={} must be below its largest b={}", a, b);
    validate((function != celu && function != softplus) || a != 0,
             "it divides by its option a, which must not be 0");
    return only(inputs);
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return work.elements(); }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const {
    return {.output = ForwardMemory::Output::halo_buffer,
            .keeps_input = backward().keeps == Keeps::input,
            .keeps_output = backward().keeps == Keeps::output};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const {
    return {.input_bytes = place.bytes(place.needed),
            .workspace_bytes = backward().multiplies ? place.bytes(place.needed) : 0};
  }
};

}  // namespace mpi4dl
