#include "execute/operation.hpp"

#include <utility>

namespace mpi4dl {
namespace {

class FormulaTape : public Tape {
 public:
  using Formula = std::function<Gradients(const at::Tensor&)>;
  explicit FormulaTape(Formula formula) : formula_(std::move(formula)) {}
  Gradients backward(const at::Tensor& gradient) override { return formula_(gradient); }

 private:
  Formula formula_;
};

}  // namespace

bool sole_owner(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.use_count() != 1 || tensor.storage().use_count() != 1)
    return false;
  for (int64_t axis = 0; axis < tensor.dim(); ++axis)
    if (tensor.size(axis) > 1 && tensor.stride(axis) == 0) return false;  // expanded
  return true;
}

TileResult with_backward(at::Tensor output,
                         std::function<Gradients(const at::Tensor& gradient)> backward) {
  return {std::move(output), std::make_unique<FormulaTape>(std::move(backward))};
}

TileResult run(const TileRun& run) {
  return std::visit([&](const auto& op) { return run_tile(op, run); }, run.node().op);
}

}  // namespace mpi4dl
