#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace mpi4dl {

/// One number per spatial axis, [D,] H, W.
using Extents = std::vector<int64_t>;

/// A value of the graph without its batch axis; no spatial axes after flatten or global pooling.
struct Shape {
  int64_t channels = 0;
  Extents space;

  bool spatial() const { return !space.empty(); }
  int64_t elements() const;
  bool operator==(const Shape&) const = default;
};

/// "64x128x128"
std::string to_string(const Shape& shape);

// The operators and their options. Nothing here knows of ranks, tiles or halos: geometry.hpp says
// which inputs an output needs, ops/ runs them. Empty stride, padding and dilation mean 1, 0, 1
// on each axis; an empty stride of a pooling means its kernel.

struct Input {
  Shape shape;
};

struct Convolution {
  int64_t out_channels = 1;
  Extents kernel;
  Extents stride = {}, padding = {}, dilation = {};
  int64_t groups = 1;
  bool bias = true;
};

struct TransposedConvolution {
  int64_t out_channels = 1;
  Extents kernel;
  Extents stride = {}, padding = {}, dilation = {}, output_padding = {};
  int64_t groups = 1;
  bool bias = true;
};

struct BatchNorm {
  double eps = 1e-5;
  double momentum = 0.1;
};

struct GroupNorm {
  int64_t groups = 1;
  double eps = 1e-5;
};

struct Relu {};

struct MaxPool {
  Extents kernel;
  Extents stride = {}, padding = {}, dilation = {};
  bool ceil_mode = false;
};

struct AvgPool {
  Extents kernel;
  Extents stride = {}, padding = {};
  bool ceil_mode = false;
  bool count_include_pad = true;
};

/// The mean over all pixels; the result has no spatial axes.
struct GlobalAvgPool {};

enum class Interpolation { nearest, bilinear };

/// Enlarges every spatial axis by a whole factor (bilinear: corners not aligned, 2-D only).
struct Upsample {
  int64_t factor = 2;
  Interpolation mode = Interpolation::nearest;
};

struct Add {};
/// Joins along channels.
struct Concat {};
struct Flatten {};

struct Linear {
  int64_t out_features = 1;
  bool bias = true;
};

struct Dropout {
  double probability = 0.5;
};

struct Identity {};

using Operator =
    std::variant<Input, Convolution, TransposedConvolution, BatchNorm, GroupNorm, Relu, MaxPool,
                 AvgPool, GlobalAvgPool, Upsample, Add, Concat, Flatten, Linear, Dropout, Identity>;

/// For example "convolution"; for messages and reports.
std::string kind(const Operator& op);

}  // namespace mpi4dl
