#pragma once

#include "ops/operation.hpp"

namespace mpi4dl {

// One function per operator, in the file of its family; operation.cpp chooses.

TileResult run_convolution(const Convolution& op, const TileRun& run);
TileResult run_transposed_convolution(const TransposedConvolution& op, const TileRun& run);
TileResult run_batch_norm(const BatchNorm& op, const TileRun& run);
TileResult run_group_norm(const GroupNorm& op, const TileRun& run);
TileResult run_max_pool(const MaxPool& op, const TileRun& run);
TileResult run_avg_pool(const AvgPool& op, const TileRun& run);
TileResult run_global_avg_pool(const TileRun& run);
TileResult run_upsample(const Upsample& op, const TileRun& run);
TileResult run_relu(const TileRun& run);
TileResult run_add(const TileRun& run);
TileResult run_concat(const TileRun& run);
TileResult run_flatten(const TileRun& run);
TileResult run_linear(const Linear& op, const TileRun& run);
TileResult run_dropout(const Dropout& op, const TileRun& run);
TileResult run_identity(const TileRun& run);

}  // namespace mpi4dl
