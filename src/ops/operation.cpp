#include "ops/operation.hpp"

#include "base/error.hpp"
#include "ops/operators.hpp"

namespace mpi4dl {
namespace {

struct Runner {
  const TileRun& run;

  TileResult operator()(const Input&) const { throw Error("an input is given, not computed"); }
  TileResult operator()(const Convolution& op) const { return run_convolution(op, run); }
  TileResult operator()(const TransposedConvolution& op) const {
    return run_transposed_convolution(op, run);
  }
  TileResult operator()(const BatchNorm& op) const { return run_batch_norm(op, run); }
  TileResult operator()(const GroupNorm& op) const { return run_group_norm(op, run); }
  TileResult operator()(const Relu&) const { return run_relu(run); }
  TileResult operator()(const MaxPool& op) const { return run_max_pool(op, run); }
  TileResult operator()(const AvgPool& op) const { return run_avg_pool(op, run); }
  TileResult operator()(const GlobalAvgPool&) const { return run_global_avg_pool(run); }
  TileResult operator()(const Upsample& op) const { return run_upsample(op, run); }
  TileResult operator()(const Add&) const { return run_add(run); }
  TileResult operator()(const Concat&) const { return run_concat(run); }
  TileResult operator()(const Flatten&) const { return run_flatten(run); }
  TileResult operator()(const Linear& op) const { return run_linear(op, run); }
  TileResult operator()(const Dropout& op) const { return run_dropout(op, run); }
  TileResult operator()(const Identity&) const { return run_identity(run); }
};

}  // namespace

bool sole_owner(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.use_count() != 1 || tensor.storage().use_count() != 1)
    return false;
  for (int64_t axis = 0; axis < tensor.dim(); ++axis)
    if (tensor.size(axis) > 1 && tensor.stride(axis) == 0) return false;  // expanded
  return true;
}

TileResult run(const TileRun& run) {
  return std::visit(Runner{run}, run.node().op);
}

bool collective(const Operator& op) {
  return std::holds_alternative<BatchNorm>(op) || std::holds_alternative<GroupNorm>(op) ||
         std::holds_alternative<GlobalAvgPool>(op);
}

}  // namespace mpi4dl
