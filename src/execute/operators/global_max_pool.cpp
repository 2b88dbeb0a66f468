#include <ATen/ATen.h>

#include <limits>

#include "comm/collectives.hpp"
#include "exchange/redistribution.hpp"
#include "execute/operation.hpp"

namespace mpi4dl {
namespace {

/// Each tile finds its own largest pixel and where in the image it lies. All tiles of an image
/// agree on the largest, and on the first place that has it; backward hands its gradient to that
/// place.
class GlobalMaxPoolTape : public Tape {
 public:
  explicit GlobalMaxPoolTape(const TileRun& run)
      : pooling_(*run.pooling),
        input_(run.inputs[0].box),
        part_(run.pooled_part),
        owned_(run.owned),
        space_(run.graph.node(run.node().inputs[0]).shape.space),
        shape_{run.images.length(), run.node().shape.channels},
        options_(run.inputs[0].data.options()) {}

  at::Tensor forward(const at::Tensor& input, const Communicator* tiles) {
    at::Tensor best = at::full(shape_, -kInfinity, options_.dtype(at::kDouble));
    at::Tensor first = at::full(shape_, kNowhere, options_.dtype(at::kLong));
    if (!input_.empty()) {
      // A value that is not a number is larger than all others, so that it is not lost.
      best = largest(input).to(at::kDouble).nan_to_num(kInfinity, kInfinity, -kInfinity);
      first = place_in_image(index_).neg_();
    }
    const at::Tensor own = best.clone(), own_first = first.clone();
    if (tiles != nullptr) {
      all_reduce(best, *tiles, {Reduction::max});
      first = at::where(own == best, first, at::full_like(first, kNowhere));
      all_reduce(first, *tiles, {Reduction::max});
    }
    wins_ = own_first.eq(first).logical_and(own.eq(best));
    return owned_.empty() ? at::empty(owned_.shape(), options_) : best.to(options_);
  }

  Gradients backward(const at::Tensor& gradient) override {
    const auto type = c10::typeMetaToScalarType(options_.dtype());
    const Patch part = make_patch(pooling_.comm(), part_, type);
    pooling_.run({owned_, gradient.defined() ? gradient : at::empty({0, 0}, options_)}, part);
    if (input_.empty()) return {{at::Tensor()}, {}};
    at::Tensor result = at::zeros(input_.shape(), options_);
    result.flatten(2).scatter_(2, index_.unsqueeze(2), (part.data * wins_).unsqueeze(2));
    return {{result}, {}};
  }

 private:
  static constexpr int64_t kNowhere = std::numeric_limits<int64_t>::min();
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  /// Keeps where in the tile they are; of equal ones the first.
  at::Tensor largest(const at::Tensor& input) {
    const std::vector<int64_t> one(space_.size(), 1);
    auto [values, index] = space_.size() == 3 ? at::adaptive_max_pool3d(input, one)
                                              : at::adaptive_max_pool2d(input, one);
    index_ = index.flatten(1);
    return values.flatten(1);
  }

  /// Returns places in the tile as places in the image, row by row.
  at::Tensor place_in_image(at::Tensor index) const {
    at::Tensor place = at::zeros_like(index);
    int64_t pixels = 1;
    for (int axis = static_cast<int>(space_.size()) - 1; axis >= 0; --axis) {
      const Interval& rows = input_[axis + 2];
      place = place + (index.remainder(rows.length()) + rows.begin) * pixels;
      index = index.div(rows.length(), "floor");
      pixels *= space_[axis];
    }
    return place;
  }

  const Redistribution& pooling_;
  Box input_, part_, owned_;
  Extents space_;
  std::vector<int64_t> shape_;  // of the result for the images of this rank
  at::TensorOptions options_;
  at::Tensor index_, wins_;
};

}  // namespace

template <>
TileResult run_tile(const GlobalMaxPool& /*op*/, const TileRun& run) {
  auto tape = std::make_unique<GlobalMaxPoolTape>(run);
  at::Tensor output = tape->forward(run.inputs[0].data, run.context.tiles);
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
