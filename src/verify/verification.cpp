#include "verify/verification.hpp"

#include <ATen/ATen.h>

#include <numeric>

#include "backend/backend.hpp"
#include "comm/collectives.hpp"
#include "data/synthetic.hpp"

namespace mpi4dl {
namespace {

using TensorMap = std::map<std::string, at::Tensor>;

/// Gathers tensors of all stages on every rank. `mine`: the tensors that this rank answers for,
/// each of them on one rank only.
TensorMap gather(const Graph& graph, ParameterKind kind, const TensorMap& mine,
                 const Communicator& world) {
  std::vector<int> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0);
  std::vector<Parameter> wanted = distinct_parameters(graph, nodes);
  std::erase_if(wanted, [kind](const Parameter& parameter) { return parameter.kind != kind; });
  std::vector<at::Tensor> flat;
  for (const Parameter& parameter : wanted) {
    const auto here = mine.find(parameter.name);
    flat.push_back(here == mine.end() ? at::zeros({parameter.elements()}, at::kDouble)
                                      : here->second.reshape({-1}).to(at::kCPU, at::kDouble));
  }
  if (flat.empty()) return {};
  at::Tensor all = at::cat(flat);
  all_reduce(all, world);
  TensorMap found;
  int64_t offset = 0;
  for (const Parameter& parameter : wanted) {
    found[parameter.name] =
        all.narrow(0, offset, parameter.elements()).view(parameter.shape).clone();
    offset += parameter.elements();
  }
  return found;
}

/// Returns the tensors of the stage whose first tile in the first replica this rank is, but for
/// those that an earlier stage answers for.
TensorMap answered_for(const Trainer& trainer, const Layout& layout, int rank,
                       TensorMap (Parameters::*which)() const) {
  const Role role = layout.roles(rank)[0];
  if (role.replica != 0 || role.tile != 0) return {};
  TensorMap mine = (*trainer.parameters().at(role.stage).*which)();
  const int first = trainer.cells().at(role.stage).first;
  for (const std::string& name : parameters_before(trainer.graph(), first)) mine.erase(name);
  return mine;
}

StepResult train(const Graph& graph, const Layout& layout, Work work,
                 const VerificationOptions& options, const Communicator& world) {
  const int64_t batch = work.effective_batch;
  Trainer trainer(graph, layout, std::move(work), options.trainer, world);
  const RandomImages data({.size = batch * options.steps,
                           .classes = graph.node(graph.output()).shape.channels,
                           .image = graph.shape(graph.input()),
                           .seed = options.trainer.seed});
  StepResult result;
  for (int step = 0; step < options.steps; ++step) {
    std::vector<int64_t> samples(batch);
    std::iota(samples.begin(), samples.end(), step * batch);
    SampleBatch images(data, std::move(samples));
    StepReport report = trainer.step(images);
    result.loss = report.loss;
    result.logits = report.logits;
    result.sent.messages += report.sent.messages;
    result.sent.bytes += report.sent.bytes;
    result.peak_bytes = report.peak_bytes;
  }
  all_reduce(result.logits, world);
  trainer.gather_gradients();
  const auto collect = [&](ParameterKind kind, TensorMap (Parameters::*which)() const) {
    return gather(graph, kind, answered_for(trainer, layout, world.rank(), which), world);
  };
  result.gradients = collect(ParameterKind::trained, &Parameters::gradients);
  result.parameters = collect(ParameterKind::trained, &Parameters::trained);
  result.parameters.merge(collect(ParameterKind::frozen, &Parameters::frozen));
  result.statistics = collect(ParameterKind::statistic, &Parameters::statistics);
  result.replicas_agree = trainer.replicas_agree();
  return result;
}

}  // namespace

StepResult train_in_layout(const Graph& graph, const Layout& layout,
                           const VerificationOptions& options, const Communicator& world) {
  return train(graph, layout, share_work(layout, options.batch, options.schedule, world.rank()),
               options, world);
}

StepResult train_alone(const Graph& graph, const VerificationOptions& options,
                       const Communicator& alone) {
  VerificationOptions one = options;
  one.trainer.cells = {{0, static_cast<int>(graph.cells().size())}};
  one.trainer.stage.recompute = false;
  return train(graph, Layout(1, {Grid{}}),
               work_alone(options.batch, options.trainer.stage.batch_norm), one,
               alone.with_backend(make_backend("cpu", at::kCPU)));
}

}  // namespace mpi4dl
