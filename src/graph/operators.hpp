#pragma once

#include <variant>

#include "graph/operators/adaptive_avg_pool.hpp"
#include "graph/operators/add.hpp"
#include "graph/operators/avg_pool.hpp"
#include "graph/operators/batch_norm.hpp"
#include "graph/operators/broadcast.hpp"
#include "graph/operators/channel_convolution.hpp"
#include "graph/operators/channel_norm.hpp"
#include "graph/operators/channel_pad.hpp"
#include "graph/operators/channel_scale.hpp"
#include "graph/operators/channel_shuffle.hpp"
#include "graph/operators/channel_slice.hpp"
#include "graph/operators/channel_softmax.hpp"
#include "graph/operators/concat.hpp"
#include "graph/operators/convolution.hpp"
#include "graph/operators/dropout.hpp"
#include "graph/operators/elementwise.hpp"
#include "graph/operators/flatten.hpp"
#include "graph/operators/global_avg_pool.hpp"
#include "graph/operators/global_max_pool.hpp"
#include "graph/operators/group_norm.hpp"
#include "graph/operators/identity.hpp"
#include "graph/operators/input.hpp"
#include "graph/operators/linear.hpp"
#include "graph/operators/max_pool.hpp"
#include "graph/operators/pad.hpp"
#include "graph/operators/pixel_shuffle.hpp"
#include "graph/operators/pixel_unshuffle.hpp"
#include "graph/operators/pointwise.hpp"
#include "graph/operators/prelu.hpp"
#include "graph/operators/relu.hpp"
#include "graph/operators/resize.hpp"
#include "graph/operators/transposed_convolution.hpp"

namespace mpi4dl {

/// Lists operators that are defined wholly: a type without one of the members of the concept is an
/// error.
template <OperatorDefinition... Ops>
using OperatorList = std::variant<Ops...>;

/// An Operator is any of these. Nothing in them knows of ranks, tiles or halos.
using Operator =
    OperatorList<Input, Convolution, TransposedConvolution, BatchNorm, GroupNorm, Relu, MaxPool,
                 AvgPool, GlobalAvgPool, Resize, Add, Concat, Flatten, Linear, Dropout, Identity,
                 Broadcast, ChannelSlice, GlobalMaxPool, Pointwise, Elementwise, ChannelScale,
                 PRelu, ChannelNorm, ChannelSoftmax, AdaptiveAvgPool, Pad, PixelShuffle,
                 PixelUnshuffle, ChannelShuffle, ChannelPad, ChannelConvolution>;

// What the definitions say, for whoever has an operator of any kind.

/// Returns what messages and reports call an operator, such as "convolution".
std::string kind(const Operator& op);
const Properties& properties(const Operator& op);

/// Returns the shape of the result; throws UsageError where the inputs do not fit the operator. The
/// caller adds the names of the nodes to the sentence.
Shape result_shape(const Operator& op, const Shapes& inputs);

/// Returns which rows (or columns) of an input with spatial axes an operator reads to make
/// `rows.outputs`. They are not clipped to the image for windows (what lies outside is padding),
/// and clipped for the others. There are none for no output, and for outputs of a transposed
/// convolution that no input reaches.
Interval needed_rows(const Operator& op, const Rows& rows);

/// Returns the windows of convolution and pooling, one per spatial axis; none for other operators.
std::vector<Window> windows(const Operator& op, int spatial_axes);

std::vector<Parameter> parameters(const Operator& op, const Shapes& inputs);
/// No image takes so many floating-point operations, of a node and of all together; they can still
/// be counted.
constexpr double kMostOperations = 0x1p61;

/// Counts the floating-point operations of forward; a multiply-add counts as two. Biases,
/// statistics and what only moves data count nothing.
int64_t flops(const Operator& op, const NodeWork& work);
ForwardMemory forward_memory(const Operator& op, const TilePlacement& place);
BackwardMemory backward_memory(const Operator& op, const TilePlacement& place);

}  // namespace mpi4dl
