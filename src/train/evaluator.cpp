#include "train/evaluator.hpp"

#include <ATen/ATen.h>

#include <numeric>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "base/rounding.hpp"
#include "comm/collectives.hpp"
#include "memory/memory_meter.hpp"
#include "train/collected_logits.hpp"

namespace mpi4dl {
namespace {

/// Makes as few micro-batches of at most `most` images as there can be, of one size or two.
std::vector<MicroBatch> cut(const Interval& images, int64_t most) {
  const int64_t count = divide_up(images.length(), most);
  std::vector<MicroBatch> batches;
  for (int64_t i = 0; i < count; ++i) {
    const Interval piece = part(images.length(), i, count);
    MicroBatch& batch = batches.emplace_back(piece.length());
    std::iota(batch.begin(), batch.end(), images.begin + piece.begin);
  }
  return batches;
}

void check_finite(const at::Tensor& logits) {
  const at::Tensor bad = logits.isfinite().all(1).logical_not().nonzero();
  ensure(bad.numel() == 0, "the model's output for image {} of {} is not finite",
         bad.numel() == 0 ? 0 : bad[0].item<int64_t>() + 1, logits.size(0));
}

}  // namespace

Evaluator::Evaluator(const Graph& graph, const Layout& layout, const ProcessGroups& groups,
                     const StageParameters& parameters, const EvaluatorOptions& options,
                     int64_t images, const Communicator& world)
    : images_(images),
      classes_(graph.node(graph.output()).shape.channels),
      type_(options.type),
      world_(world) {
  check_classifier(graph);
  const int replica = groups.directions()[0].role.replica;
  batches_ = cut(part(images, replica, layout.replicas()), options.batch);
  for (int batch = 0; batch < static_cast<int>(batches_.size()); ++batch)
    schedule_.push_back({Action::Kind::forward, batch});
  pipeline_ = std::make_unique<Pipeline>(
      plan_sizes(graph, layout.stages(), options.cells, batches_, options.halo), groups, parameters,
      StageOptions{});
}

Predictions Evaluator::run(BatchSource& images) {
  Predictions found{.logits = at::zeros({images_, classes_}, at::kDouble)};
  const Backend& backend = *world_.context().backend;
  CollectedLogits collected;
  const Feed feed{.pixels =
                      [&](const MicroBatch& batch, const Box& box) {
                        return backend.from_host(read_box(images, batch, box, type_));
                      },
                  .loss_gradient =
                      [&](const MicroBatch& batch, const Patch& logits) {
                        collected.add(batch, logits);
                        return at::Tensor();
                      }};
  {
    const MemoryMeter meter(backend.device().type());
    pipeline_->run_forward(schedule_, batches_, {.feed = feed, .training = false});
    found.peak_bytes = meter.peak_bytes();
  }
  collected.write(found.logits, world_.context());
  all_reduce(found.logits, world_);
  check_finite(found.logits);
  return found;
}

void check_classifier(const Graph& graph) {
  const Shape& output = graph.node(graph.output()).shape;
  validate(
      !output.spatial(),
      "the output of this model is a map of {}, and segmentation cannot be trained or evaluated "
      "yet; verify can check its layouts",
      to_string(output));
}

Metrics measure(const Predictions& predictions, const Dataset& data, const BadSamples& bad) {
  const int64_t classes = predictions.logits.size(1);
  std::vector<int64_t> labels(data.size(), -1);
  for (int64_t i = 0; i < data.size(); ++i) {
    if (bad.contains(i)) continue;
    labels[i] = data.label(i);
    ensure(labels[i] < classes, "{} has label {}, but the model has {} classes", data.name(i),
           labels[i], classes);
  }
  return measure(predictions.values(), labels, classes);
}

}  // namespace mpi4dl
