#include <ATen/ATen.h>

#include <functional>

#include "base/random.hpp"
#include "exchange/random_field.hpp"
#include "ops/operators.hpp"

namespace mpi4dl {
namespace {

/// A backward that is a single formula.
class LambdaTape : public Tape {
 public:
  using Formula = std::function<Gradients(const at::Tensor&)>;
  explicit LambdaTape(Formula formula) : formula_(std::move(formula)) {}
  Gradients backward(const at::Tensor& gradient) override { return formula_(gradient); }

 private:
  Formula formula_;
};

TileResult result(at::Tensor output, LambdaTape::Formula backward) {
  return {std::move(output), std::make_unique<LambdaTape>(std::move(backward))};
}

/// 0 for dropped elements, 1/(1-p) for kept ones: keyed by step, layer and global position, so
/// every layout drops the same elements.
at::Tensor dropout_mask(double probability, const TileRun& run) {
  const Shape& shape = run.node().shape;
  std::vector<int64_t> whole{0, shape.channels};
  whole.insert(whole.end(), shape.space.begin(), shape.space.end());
  const uint64_t key = combine_keys(run.context.dropout_seed, static_cast<uint64_t>(run.id));
  const std::vector<int64_t>& images = run.context.images;
  std::vector<at::Tensor> masks;
  for (int64_t image = run.output[0].begin; image < run.output[0].end; ++image) {
    Box box = run.output;
    const int64_t place = images.empty() ? image : images[image];
    box[0] = {place, place + 1};
    masks.push_back(random_field(box, whole, key, [probability](double u) {
      return u < probability ? 0 : 1 / (1 - probability);
    }));
  }
  return at::cat(masks);
}

}  // namespace

TileResult run_relu(const TileRun& run) {
  at::Tensor output = run.target;
  if (output.defined()) {
    at::clamp_min_out(output, run.inputs[0].data, 0);
  } else {
    output = run.inputs[0].data.clamp_min(0);
  }
  return result(output, [output](const at::Tensor& gradient) {
    return Gradients{{at::threshold_backward(gradient, output, 0)}, {}};
  });
}

TileResult run_add(const TileRun& run) {
  at::Tensor sum = run.target;
  if (sum.defined()) {
    at::add_out(sum, run.inputs[0].data, run.inputs[1].data);
  } else {
    sum = run.inputs[0].data + run.inputs[1].data;
  }
  for (size_t i = 2; i < run.inputs.size(); ++i) sum.add_(run.inputs[i].data);
  return result(sum, [count = run.inputs.size()](const at::Tensor& gradient) {
    return Gradients{std::vector<at::Tensor>(count, gradient), {}};
  });
}

TileResult run_concat(const TileRun& run) {
  std::vector<at::Tensor> parts;
  std::vector<int64_t> channels;
  for (const Patch& input : run.inputs) {
    parts.push_back(input.data);
    channels.push_back(input.data.size(1));
  }
  return result(at::cat(parts, 1), [channels](const at::Tensor& gradient) {
    return Gradients{gradient.split_with_sizes(channels, 1), {}};
  });
}

TileResult run_identity(const TileRun& run) {
  return result(run.inputs[0].data,
                [](const at::Tensor& gradient) { return Gradients{{gradient}, {}}; });
}

TileResult run_flatten(const TileRun& run) {
  const at::Tensor& input = run.inputs[0].data;
  return result(input.contiguous().flatten(1),
                [shape = input.sizes().vec()](const at::Tensor& gradient) {
                  return Gradients{{gradient.reshape(shape)}, {}};
                });
}

TileResult run_linear(const Linear& op, const TileRun& run) {
  const at::Tensor input = run.inputs[0].data, weight = run.parameters[0];
  const at::Tensor output = at::linear(input, weight, op.bias ? run.parameters[1] : at::Tensor());
  return result(output, [input, weight, bias = op.bias](const at::Tensor& gradient) {
    Gradients gradients{{gradient.mm(weight)}, {gradient.t().mm(input)}};
    if (bias) gradients.parameters.push_back(gradient.sum(0));
    return gradients;
  });
}

TileResult run_dropout(const Dropout& op, const TileRun& run) {
  if (!run.context.training || op.probability == 0) return run_identity(run);
  const Patch& input = run.inputs[0];
  const at::Tensor mask = dropout_mask(op.probability, run).to(input.data.scalar_type());
  return result(input.data * mask,
                [mask](const at::Tensor& gradient) { return Gradients{{gradient * mask}, {}}; });
}

}  // namespace mpi4dl
