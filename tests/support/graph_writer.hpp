#pragma once

#include "graph/graph.hpp"
#include "graph/operators.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {

/// Writes a graph node by node, and draws the layers that cells of random networks consist of.
class GraphWriter {
 public:
  GraphWriter(Dice& dice, const Shape& image) : dice_(dice), graph_(image) {}

 protected:
  static constexpr int64_t kMostChannels = 6;

  void begin_cell();
  Value add(const Operator& op, const std::vector<Value>& inputs,
            const std::vector<ParameterChoice>& parameters = {});
  /// Returns the value itself where the operator does not fit.
  Value try_add(const Operator& op, Value x);
  /// Adds a norm, but never one of a norm with nothing but linear operators between them: its mean
  /// is zero, so pixels of a constant image are zero but for rounding, and a ReLU's gradient there
  /// is chance.
  Value add_norm(const Operator& norm, Value x);
  /// Adds convolution, batch norm and ReLU, either way round.
  Value unit(Value x, int64_t stride);

  Operator activation(Value x);
  Dropout dropout();
  /// Draws any operator that keeps its shape.
  Operator guest(const Shape& shape);
  /// Draws an odd kernel, perhaps dilated, padded so that the size stays for stride 1.
  Convolution same_size(int64_t channels, const Shape& input);
  Convolution pointwise(int64_t channels) const;
  /// Returns a convolution of 1x7 or 7x1: long on one axis, counted from the last.
  Convolution flat(int64_t channels, int64_t axis_from_last) const;
  /// Returns one value for each spatial axis.
  Extents each(int64_t value) const;

  Dice& dice_;
  Graph graph_;

 private:
  std::vector<bool> centred_{false};  // by node: a norm's result, with no ReLU since
};

}  // namespace mpi4dl::testing
