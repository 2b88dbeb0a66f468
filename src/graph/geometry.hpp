#pragma once

#include <vector>

#include "geometry/interval.hpp"
#include "geometry/window.hpp"
#include "graph/operators.hpp"

namespace mpi4dl {

/// The windows of convolution and pooling, one per spatial axis; empty for other operators.
std::vector<Window> windows(const Operator& op, int spatial_axes);

/// Which rows (or columns) of an input an operator reads to make `outputs` along spatial `axis`.
/// Not clipped to the image for windows (what lies outside is padding), clipped for the others.
/// Empty for no output, and for outputs of a transposed convolution that no input reaches.
/// `length` is the input's length along that axis. Operators that read all of the input (flatten,
/// global pooling) need not be asked.
Interval needed_rows(const Operator& op, int axis, int spatial_axes, const Interval& outputs,
                     int64_t length);

/// The shape of the result; throws UsageError where the inputs do not fit the operator.
/// The caller adds the names of the nodes to the sentence.
Shape result_shape(const Operator& op, const std::vector<Shape>& inputs);

/// True where the operator reads only the pixel (of each input) that it writes.
bool pointwise(const Operator& op);

}  // namespace mpi4dl
