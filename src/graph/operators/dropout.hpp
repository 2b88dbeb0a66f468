#pragma once

#include "base/error.hpp"
#include "graph/definition.hpp"

namespace mpi4dl {

/// Says what is dropped together: an element; a channel of an image; all of an image, as stochastic
/// depth (drop path) does.
enum class DropoutUnit { element, channel, image };

template <>
inline constexpr std::array kWords<DropoutUnit>{Word{"element", DropoutUnit::element},
                                                Word{"channel", DropoutUnit::channel},
                                                Word{"image", DropoutUnit::image}};

/// Drops elements in training, the same ones in every layout.
struct Dropout {
  double probability = 0.5;
  DropoutUnit per = DropoutUnit::element;

  static constexpr std::string_view kName = "dropout";
  static constexpr Properties kProperties{.pointwise = true,
                                          .collective = false,
                                          .pooling = Pooling::none,
                                          .overlaps_halo = false,
                                          .window = WindowRule::none};
  static constexpr std::tuple kFields{Field{"probability", &Dropout::probability},
                                      Field{"per", &Dropout::per}};
  Shape result(const Shapes& inputs) const {
    validate(probability >= 0 && probability < 1, "its probability must be in [0, 1), not {}",
             probability);
    return only(inputs);
  }
  Interval need(const Rows& rows) const { return rows.outputs; }
  std::vector<Parameter> parameters(const Shapes& /*inputs*/) const { return {}; }
  int64_t flops(const NodeWork& work) const { return work.elements(); }
  /// Keeps the mask.
  ForwardMemory forward_memory(const TilePlacement& place) const {
    Box drawn = place.computed;
    for (int axis = mask_axes(drawn.axes()); axis < drawn.axes(); ++axis) drawn[axis] = {0, 1};
    return {.kept_bytes = place.bytes(drawn)};
  }
  BackwardMemory backward_memory(const TilePlacement& place) const { return fresh_gradient(place); }
  /// Returns how many axes the mask of a value with so many axes has: N, C and so on.
  int mask_axes(int axes) const {
    if (per == DropoutUnit::image) return 1;
    return per == DropoutUnit::channel ? 2 : axes;
  }
};

}  // namespace mpi4dl
