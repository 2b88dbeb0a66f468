#include "execute/parameters.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "backend/precision.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "comm/node/shared_memory.hpp"

namespace mpi4dl {
namespace {

at::Tensor random_values(const Parameter& parameter, uint64_t seed) {
  const uint64_t key = combine_keys(seed, key_of(parameter.name));
  const double bound = 1 / std::sqrt(static_cast<double>(parameter.fan_in));
  at::Tensor values = at::empty(parameter.shape, at::kDouble);
  double* data = values.data_ptr<double>();
  for (int64_t i = 0; i < values.numel(); ++i)
    data[i] = (2 * uniform(key, static_cast<uint64_t>(i)) - 1) * bound;
  return values;
}

/// Returns weights as convolutions want them, channels last.
at::Tensor in_usual_format(const at::Tensor& values) {
  if (values.dim() == 4) return values.contiguous(at::MemoryFormat::ChannelsLast);
  if (values.dim() == 5) return values.contiguous(at::MemoryFormat::ChannelsLast3d);
  return values;
}

at::Tensor initial_values(const Parameter& parameter, c10::ScalarType type, uint64_t seed,
                          const Backend& backend) {
  // Running statistics are sums of many small updates: half types would lose them.
  if (parameter.statistic()) type = wide_type(type);
  const at::TensorOptions options = backend.options(type);
  if (parameter.init == Init::ones) return at::ones(parameter.shape, options);
  if (parameter.init == Init::zeros) return at::zeros(parameter.shape, options);
  if (parameter.init == Init::quarters) return at::full(parameter.shape, 0.25, options);
  return in_usual_format(random_values(parameter, seed).to(options));
}

/// Returns a view of memory at `offset` with the shape and memory format of `like`; moves the
/// offset on.
at::Tensor place(const at::Tensor& memory, int64_t& offset, const at::Tensor& like) {
  const at::Tensor view = memory.as_strided(like.sizes(), like.strides(), offset);
  offset += like.numel();
  return view;
}

}  // namespace

Parameters::Parameters(const Graph& graph, const std::vector<int>& nodes, c10::ScalarType type,
                       uint64_t seed, std::shared_ptr<const Backend> backend,
                       const std::shared_ptr<SharedMemory>& memory)
    : graph_(&graph), nodes_(nodes), type_(type), backend_(std::move(backend)) {
  find_entries(seed);
  place_values();
  place_sums(memory);
  find_computed();
  values_.resize(entries_of_.size());
  sums_.resize(entries_of_.size());
  for (const int node : nodes) list_weights(node);
  compute_weights();
}

void Parameters::find_entries(uint64_t seed) {
  std::map<std::string, size_t> by_name;
  entries_of_.resize(graph_->nodes().size());
  for (const int node : nodes_)
    for (const Parameter& parameter : graph_->node(node).parameters) {
      const auto [found, is_new] = by_name.emplace(parameter.name, entries_.size());
      if (is_new)
        entries_.push_back({.parameter = parameter,
                            .node = node,
                            .value = initial_values(parameter, type_, seed, *backend_)});
      entries_of_[node].push_back(found->second);
    }
}

void Parameters::find_computed() {
  computed_of_.resize(entries_of_.size());
  for (const int node : nodes_)
    for (const auto& [parameter, formula] : graph_->node(node).weights) {
      if (!formula) continue;
      const auto same = [&](const Computed& other) { return other.weight.formula() == *formula; };
      const auto known = std::ranges::find_if(computed_, same);
      computed_of_[node].push_back(known - computed_.begin());
      if (known != computed_.end()) continue;
      std::vector<size_t> entries;
      std::map<std::string, ComputedWeight::Source> sources;
      each_parameter(*formula, [&](const Formula& each) {
        entries.push_back(entry_of(node, each.name));
        sources[each.name] = {entries_[entries.back()].value, entries_[entries.back()].sum};
      });
      const at::Tensor value =
          in_usual_format(at::empty(parameter.shape, backend_->options(type_)));
      computed_.push_back({node, entries, ComputedWeight(*formula, std::move(sources), value)});
    }
}

size_t Parameters::entry_of(int node, const std::string& name) const {
  for (const size_t i : entries_of_[node])
    if (entries_[i].parameter.name == name) return i;
  throw Error(fmt::format("{} is no parameter of {}", name, graph_->node(node).name));
}

void Parameters::list_weights(int node) {
  size_t computed = 0;
  for (const auto& [parameter, formula] : graph_->node(node).weights) {
    if (formula) {
      const ComputedWeight& weight = computed_[computed_of_[node][computed++]].weight;
      values_[node].push_back(weight.value());
      sums_[node].push_back(weight.sum());
    } else {
      const Entry& entry = entries_[entry_of(node, parameter.name)];
      values_[node].push_back(entry.value);
      sums_[node].push_back(entry.sum);
    }
  }
}

void Parameters::compute_weights() {
  for (Computed& each : computed_) each.weight.update();
}

void Parameters::place_values() {
  int64_t elements = 0, offset = 0;
  for (const Entry& entry : entries_)
    if (entry.parameter.trained()) elements += entry.parameter.elements();
  trained_ = at::empty({elements}, backend_->options(type_));
  for (Entry& entry : entries_) {
    if (!entry.parameter.trained()) continue;
    entry.range = {offset, offset + entry.parameter.elements()};
    const at::Tensor value = std::exchange(entry.value, place(trained_, offset, entry.value));
    entry.value.copy_(value);
  }
}

void Parameters::place_sums(const std::shared_ptr<SharedMemory>& memory) {
  int64_t measured = 0;
  for (const Entry& entry : entries_)
    if (entry.parameter.statistic()) measured += entry.parameter.elements();
  const auto make = [&](int64_t elements) {
    if (memory && backend_->on_host())
      return memory->empty(std::array{elements}, wide_type(type_), c10::MemoryFormat::Contiguous);
    return at::empty({elements}, backend_->options(wide_type(type_)));
  };
  gradients_ = make(trained_.numel());
  statistics_ = make(measured + static_cast<int64_t>(nodes_.size()));
  gradients_.zero_();
  statistics_.zero_();
  first_gradient_.assign(graph_->cells().size() + 1, 0);
  int64_t gradient = 0, statistic = 0;
  for (Entry& entry : entries_) {
    if (entry.parameter.trained()) entry.sum = place(gradients_, gradient, entry.value);
    if (entry.parameter.statistic()) entry.sum = place(statistics_, statistic, entry.value);
    for (size_t cell = graph_->node(entry.node).cell + 1; cell < first_gradient_.size(); ++cell)
      first_gradient_[cell] = gradient;
  }
  images_.resize(entries_of_.size());
  for (const int node : nodes_) images_[node] = statistics_.narrow(0, statistic++, 1);
}

void Parameters::add_gradients(int node, const std::vector<at::Tensor>& gradients) {
  const std::vector<NodeWeight>& weights = graph_->node(node).weights;
  size_t next = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].parameter.statistic() || next == gradients.size()) continue;
    const at::Tensor& gradient = gradients[next++];
    if (gradient.defined() && weights[i].parameter.trained())
      backend_->add_scaled(sums_[node][i], gradient, 1);
  }
}

void Parameters::add_statistics(int node, const std::vector<at::Tensor>& measured, int64_t images) {
  if (measured.empty()) return;
  size_t next = 0;
  for (const size_t i : entries_of_[node])
    if (entries_[i].parameter.statistic())
      backend_->add_scaled(entries_[i].sum, measured[next++], static_cast<double>(images));
  images_[node].add_(images);
}

void Parameters::update_statistics() {
  for (Entry& entry : entries_)
    if (entry.parameter.statistic())
      backend_->update_running(entry.value, entry.sum, images_[entry.node],
                               entry.parameter.momentum);
}

void Parameters::clear() {
  for (Entry& entry : entries_) entry.begun = false;
  for (Computed& each : computed_) each.weight.forget();
  statistics_.zero_();
}

void Parameters::begin(Entry& entry) {
  if (std::exchange(entry.begun, true)) return;
  backend_->clear(gradients_, entry.range);
}

void Parameters::begin_gradients(int node) {
  for (const size_t i : entries_of_[node]) begin(entries_[i]);
  for (const size_t i : computed_of_[node]) computed_[i].weight.begin();
}

void Parameters::complete_gradients_of_cell(int cell) {
  for (Entry& entry : entries_)
    if (graph_->node(entry.node).cell == cell) begin(entry);
  for (Computed& each : computed_) {
    if (graph_->node(each.node).cell != cell) continue;
    for (const size_t i : each.entries) begin(entries_[i]);  // some belong to earlier cells
    each.weight.propagate(*backend_);
  }
}

at::Tensor Parameters::gradient_memory(int first_cell, int last_cell) const {
  const int64_t begin = first_gradient_[first_cell];
  return gradients_.narrow(0, begin, first_gradient_[last_cell] - begin);
}

std::vector<std::pair<std::string, Interval>> Parameters::trained_ranges() const {
  std::vector<std::pair<std::string, Interval>> ranges;
  for (const Entry& entry : entries_)
    if (entry.parameter.trained()) ranges.emplace_back(entry.parameter.name, entry.range);
  return ranges;
}

std::vector<int> Parameters::cells() const {
  std::vector<int> found;
  for (const int node : nodes_)
    if (found.empty() || found.back() != graph_->node(node).cell)
      found.push_back(graph_->node(node).cell);
  return found;
}

std::map<std::string, at::Tensor> Parameters::by_name(const at::Tensor& memory) const {
  std::map<std::string, at::Tensor> found;
  int64_t offset = 0;
  for (const Entry& entry : entries_)
    if (entry.parameter.trained())
      found.emplace(entry.parameter.name, place(memory, offset, entry.value));
  return found;
}

std::map<std::string, at::Tensor> Parameters::of_kind(ParameterKind kind) const {
  std::map<std::string, at::Tensor> found;
  for (const Entry& entry : entries_)
    if (entry.parameter.kind == kind) found.emplace(entry.parameter.name, entry.value);
  return found;
}

}  // namespace mpi4dl
