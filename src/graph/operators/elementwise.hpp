#pragma once

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

enum class ElementwiseFunction { add, multiply, subtract, maximum, minimum, divide };

template <>
inline constexpr std::array kWords<ElementwiseFunction>{
    Word{"add", ElementwiseFunction::add},
    Word{"multiply", ElementwiseFunction::multiply},
    Word{"subtract", ElementwiseFunction::subtract},
    Word{"maximum", ElementwiseFunction::maximum},
    Word{"minimum", ElementwiseFunction::minimum},
    Word{"divide", ElementwiseFunction::divide}};

/// Combines two values element by element. Either may have one channel, which then counts for all
/// of the other's (a gate), or no spatial axes, and then counts for all pixels (squeeze and
/// excitation). Sums of values of one shape are rather Add's, which others fuse.
struct Elementwise {
  ElementwiseFunction function = ElementwiseFunction::add;

  static constexpr std::string_view kName = "elementwise";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none,
                                          .combined = "combined"};
  static constexpr std::tuple kFields{Field{"function", &Elementwise::function}};
  Shape result(const Shapes& inputs) const {
    validate(inputs.size() == 2, "it has 2 inputs, not {}", inputs.size());
    const Shape &a = inputs[0], &b = inputs[1];
    validate(a.channels == b.channels || std::min(a.channels, b.channels) == 1,
             "{} channels go with {} or 1, not with {}", a.channels, a.channels, b.channels);
    validate(a.space == b.space || !a.spatial() || !b.spatial(),
             "one of {} and {} must have the other's spatial axes, or none", to_string(a),
             to_string(b));
    return {std::max(a.channels, b.channels), a.spatial() ? a.space : b.space};
  }
  /// Says whether backward reads the inputs.
  bool keeps_inputs() const {
    return function != ElementwiseFunction::add && function != ElementwiseFunction::subtract;
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return work.elements(); }
  ForwardMemory forward_memory(const TilePlacement& /*place*/) const {
    return {.output = ForwardMemory::Output::halo_buffer, .keeps_input = keeps_inputs()};
  }
  /// The gradient of a sum is that of its operands. Others are products, before they are summed up
  /// for what is smaller.
  BackwardMemory backward_memory(const TilePlacement& place) const {
    if (function == ElementwiseFunction::add) return {.input = BackwardMemory::Input::gradient};
    return {.input_bytes = place.bytes(place.needed),
            .workspace_bytes = keeps_inputs() ? place.bytes(place.computed) : 0};
  }
};

}  // namespace mpi4dl
