#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "exchange/redistribution.hpp"
#include "graph/geometry.hpp"
#include "ops/kernels/average_pooling.hpp"
#include "ops/kernels/memory_order.hpp"
#include "ops/operators.hpp"
#include "ops/padding.hpp"

namespace mpi4dl {
namespace {

/// A pooling's numbers per axis, as libtorch takes them.
struct PoolArguments {
  std::vector<int64_t> kernel, stride, dilation, no_padding;

  explicit PoolArguments(const std::vector<Window>& windows) : no_padding(windows.size(), 0) {
    for (const Window& window : windows) {
      kernel.push_back(window.kernel);
      stride.push_back(window.stride);
      dilation.push_back(window.dilation);
    }
  }
  bool volume() const { return kernel.size() == 3; }
};

class MaxPoolTape : public Tape {
 public:
  MaxPoolTape(PoolArguments arguments, Padding frame, at::Tensor input)
      : arguments_(std::move(arguments)), frame_(std::move(frame)), input_(std::move(input)) {}

  at::Tensor forward() {
    const auto& a = arguments_;
    auto [output, indices] =
        a.volume()
            ? at::max_pool3d_with_indices(input_, a.kernel, a.stride, a.no_padding, a.dilation)
            : at::max_pool2d_with_indices(input_, a.kernel, a.stride, a.no_padding, a.dilation);
    indices_ = indices;
    return output;
  }

  Gradients backward(const at::Tensor& gradient) override {
    const auto& a = arguments_;
    const at::Tensor padded =
        a.volume()
            ? at::max_pool3d_with_indices_backward(gradient, input_, a.kernel, a.stride,
                                                   a.no_padding, a.dilation, false, indices_)
            : at::max_pool2d_with_indices_backward(gradient, input_, a.kernel, a.stride,
                                                   a.no_padding, a.dilation, false, indices_);
    return {{unpad(padded, frame_)}, {}};
  }

 private:
  PoolArguments arguments_;
  Padding frame_;
  at::Tensor input_, indices_;
};

/// By how much each output's sum is divided along one axis, as a column that broadcasts.
at::Tensor divisors(const Window& window, const Interval& outputs, int64_t length,
                    bool include_pad) {
  at::Tensor counts = at::empty({outputs.length()}, at::kDouble);
  for (int64_t o = outputs.begin; o < outputs.end; ++o) {
    const int64_t begin = o * window.stride - window.padding;
    const int64_t end = std::min(begin + window.kernel, length + window.padding);
    counts.data_ptr<double>()[o - outputs.begin] = static_cast<double>(
        include_pad ? end - begin : std::min(end, length) - std::max<int64_t>(begin, 0));
  }
  return counts;
}

at::Tensor all_divisors(const AvgPool& op, const TileRun& run, const std::vector<Window>& wins,
                        c10::ScalarType type) {
  const Extents& space = run.graph.node(run.node().inputs[0]).shape.space;
  at::Tensor product = at::ones({}, at::kDouble);
  for (size_t axis = 0; axis < wins.size(); ++axis) {
    std::vector<int64_t> shape(wins.size(), 1);
    shape[axis] = -1;
    product = product * divisors(wins[axis], run.output[static_cast<int>(axis) + 2], space[axis],
                                 op.count_include_pad)
                            .view(shape);
  }
  return product.to(type);
}

class AvgPoolTape : public Tape {
 public:
  AvgPoolTape(PoolArguments arguments, Padding frame, at::Tensor divisors)
      : arguments_(std::move(arguments)),
        frame_(std::move(frame)),
        divisors_(std::move(divisors)) {}

  at::Tensor forward(const at::Tensor& padded) {
    shape_ = padded.sizes().vec();
    options_ = padded.options().memory_format(padded.suggest_memory_format());
    const auto& a = arguments_;
    const at::Tensor sums =
        a.volume() ? at::avg_pool3d(padded, a.kernel, a.stride, a.no_padding, false, true, kSum)
                   : at::avg_pool2d(padded, a.kernel, a.stride, a.no_padding, false, true, kSum);
    return sums.div(divisors_);
  }

  Gradients backward(const at::Tensor& gradient) override {
    const auto& a = arguments_;
    const at::Tensor share = gradient.div(divisors_);
    const at::Tensor like = at::empty(shape_, options_);  // only its shape is read
    const at::Tensor padded = a.volume() ? at::avg_pool3d_backward(share, like, a.kernel, a.stride,
                                                                   a.no_padding, false, true, kSum)
                                         : at::avg_pool2d_backward(share, like, a.kernel, a.stride,
                                                                   a.no_padding, false, true, kSum);
    return {{unpad(padded, frame_)}, {}};
  }

 private:
  static constexpr int64_t kSum = 1;  // the divisor that makes libtorch's pooling a sum

  PoolArguments arguments_;
  Padding frame_;
  at::Tensor divisors_;
  std::vector<int64_t> shape_;
  at::TensorOptions options_;
};

/// What the outputs of a tile read along one axis of it.
std::vector<Reach> reaches(const AvgPool& op, const Window& window, const Interval& outputs,
                           const Interval& inputs, int64_t length) {
  const at::Tensor counts = divisors(window, outputs, length, op.count_include_pad);
  std::vector<Reach> all;
  for (int64_t o = outputs.begin; o < outputs.end; ++o) {
    const int64_t begin = o * window.stride - window.padding;
    all.push_back({std::max(begin, inputs.begin) - inputs.begin,
                   std::min(begin + window.kernel, inputs.end) - inputs.begin,
                   counts.data_ptr<double>()[o - outputs.begin]});
  }
  return all;
}

/// By our own kernel: nothing is padded, and only the pixels' places are kept.
class ImageAvgPoolTape : public Tape {
 public:
  ImageAvgPoolTape(const AvgPool& op, const TileRun& run, const std::vector<Window>& wins)
      : input_(run.inputs[0].box), output_(run.output) {
    const Extents& space = run.graph.node(run.node().inputs[0]).shape.space;
    rows_ = reaches(op, wins[0], output_[2], input_[2], space[0]);
    cols_ = reaches(op, wins[1], output_[3], input_[3], space[1]);
  }

  at::Tensor forward(const at::Tensor& input) const {
    at::Tensor output = empty_image(output_.shape(), input.scalar_type());
    average_pool(input, rows_, cols_, output);
    return output;
  }

  Gradients backward(const at::Tensor& gradient) override {
    at::Tensor result = empty_image(input_.shape(), gradient.scalar_type());
    average_pool_backward(with_channels_side_by_side(gradient), rows_, cols_, result);
    return {{result}, {}};
  }

 private:
  Box input_, output_;
  std::vector<Reach> rows_, cols_;
};

/// Each tile contributes the sum of its own pixels; the first tile of the batch part adds them.
/// That is the adjoint of handing the result out, and its backward hands the gradient out.
class GlobalAvgPoolTape : public Tape {
 public:
  explicit GlobalAvgPoolTape(const TileRun& run)
      : pooling_(*run.pooling),
        input_(run.inputs[0].box),
        owned_(run.owned),
        pixels_(run.graph.node(run.node().inputs[0]).shape.elements() / run.node().shape.channels),
        type_(run.inputs[0].data.scalar_type()) {}

  at::Tensor forward(const at::Tensor& input) {
    const Patch part = make_patch(pooling_.comm(), part_box(), type_);
    if (!input_.empty())
      part.data.copy_(input.sum(spatial_axes()).div_(static_cast<double>(pixels_)));
    const Patch whole = make_patch(pooling_.comm(), owned_, type_);
    whole.data.zero_();
    pooling_.run_adjoint(part, whole);
    return whole.data;
  }

  Gradients backward(const at::Tensor& gradient) override {
    const Patch part = make_patch(pooling_.comm(), part_box(), type_);
    pooling_.run({owned_, gradient.defined() ? gradient : at::empty({0, 0}, type_)}, part);
    if (input_.empty()) return {{at::Tensor()}, {}};
    at::Tensor share = part.data.div(static_cast<double>(pixels_));
    for (int axis = 2; axis < input_.axes(); ++axis) share = share.unsqueeze(-1);
    return {{share.expand(input_.shape())}, {}};
  }

 private:
  Box part_box() const { return input_.empty() ? Box::none(2) : Box{input_[0], input_[1]}; }
  std::vector<int64_t> spatial_axes() const {
    return input_.axes() == 5 ? std::vector<int64_t>{2, 3, 4} : std::vector<int64_t>{2, 3};
  }

  const Redistribution& pooling_;
  Box input_, owned_;
  int64_t pixels_;
  c10::ScalarType type_;
};

}  // namespace

TileResult run_max_pool(const MaxPool& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const std::vector<Window> wins = windows(op, input.box.axes() - 2);
  const Padding frame = padding_around(input.box, run.output, wins);
  auto tape = std::make_unique<MaxPoolTape>(
      PoolArguments(wins), frame, pad(input.data, frame, -std::numeric_limits<double>::infinity()));
  at::Tensor output = tape->forward();
  return {std::move(output), std::move(tape)};
}

TileResult run_avg_pool(const AvgPool& op, const TileRun& run) {
  const Patch& input = run.inputs[0];
  const std::vector<Window> wins = windows(op, input.box.axes() - 2);
  if (has_average_pooling(input.data)) {
    auto tape = std::make_unique<ImageAvgPoolTape>(op, run, wins);
    at::Tensor output = tape->forward(input.data);
    return {std::move(output), std::move(tape)};
  }
  const Padding frame = padding_around(input.box, run.output, wins);
  auto tape = std::make_unique<AvgPoolTape>(PoolArguments(wins), frame,
                                            all_divisors(op, run, wins, input.data.scalar_type()));
  at::Tensor output = tape->forward(pad(input.data, frame, 0));
  return {std::move(output), std::move(tape)};
}

TileResult run_global_avg_pool(const TileRun& run) {
  auto tape = std::make_unique<GlobalAvgPoolTape>(run);
  at::Tensor output = tape->forward(run.inputs[0].data);
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
