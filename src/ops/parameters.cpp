#include "ops/parameters.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/random.hpp"
#include "comm/shared_memory.hpp"
#include "ops/precision.hpp"

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

at::Tensor initial_values(const Parameter& parameter, c10::ScalarType type, uint64_t seed) {
  // Running statistics are sums of many small updates: half types would lose them.
  if (!parameter.trainable) type = wide_type(type);
  if (parameter.init == Init::ones) return at::ones(parameter.shape, type);
  if (parameter.init == Init::zeros) return at::zeros(parameter.shape, type);
  at::Tensor values = random_values(parameter, seed).to(type);
  if (values.dim() == 4) return values.contiguous(at::MemoryFormat::ChannelsLast);
  if (values.dim() == 5) return values.contiguous(at::MemoryFormat::ChannelsLast3d);
  return values;
}

/// A view of memory at `offset` with the shape and memory format of `like`; moves the offset on.
at::Tensor place(const at::Tensor& memory, int64_t& offset, const at::Tensor& like) {
  const at::Tensor view = memory.as_strided(like.sizes(), like.strides(), offset);
  offset += like.numel();
  return view;
}

/// sum += scale * numbers. Batch norm's numbers are float64; where the sum is not, libtorch would
/// copy both before and after.
void add_scaled(const at::Tensor& sum, const at::Tensor& numbers, double scale) {
  if (numbers.scalar_type() != at::kDouble || !sum.is_contiguous() || !numbers.is_contiguous()) {
    sum.add_(numbers, scale);
    return;
  }
  with_numbers(sum, [&]<typename T>(T* to) {
    const double* from = numbers.data_ptr<double>();
    for (int64_t i = 0; i < sum.numel(); ++i) to[i] += static_cast<T>(scale * from[i]);
  });
}

}  // namespace

Parameters::Parameters(const Graph& graph, const std::vector<int>& nodes, c10::ScalarType type,
                       uint64_t seed, const std::shared_ptr<SharedMemory>& memory)
    : graph_(&graph), nodes_(nodes), type_(type) {
  values_.resize(graph.nodes().size());
  for (const int node : nodes)
    for (const Parameter& parameter : graph.node(node).parameters)
      values_[node].push_back(initial_values(parameter, type, seed));
  place_values();
  place_sums(memory);
}

void Parameters::place_values() {
  int64_t elements = 0, offset = 0;
  each([&](const Parameter& parameter, int /*node*/, size_t /*i*/) {
    if (parameter.trainable) elements += parameter.elements();
  });
  trained_ = at::empty({elements}, type_);
  each([&](const Parameter& parameter, int node, size_t i) {
    if (!parameter.trainable) return;
    const at::Tensor value =
        std::exchange(values_[node][i], place(trained_, offset, values_[node][i]));
    values_[node][i].copy_(value);
  });
}

void Parameters::place_sums(const std::shared_ptr<SharedMemory>& memory) {
  int64_t measured = 0;
  each([&](const Parameter& parameter, int /*node*/, size_t /*i*/) {
    if (!parameter.trainable) measured += parameter.elements();
  });
  const auto count = static_cast<int64_t>(nodes_.size());
  const auto make = [&](int64_t elements) {
    return empty_for_exchange(memory, std::array{elements}, wide_type(type_),
                              c10::MemoryFormat::Contiguous);
  };
  gradients_ = make(trained_.numel());
  statistics_ = make(measured + count);
  gradients_.zero_();
  statistics_.zero_();
  begun_.assign(values_.size(), true);
  gradient_range_.resize(values_.size());
  sums_.resize(values_.size());
  images_.resize(values_.size());
  first_gradient_.assign(graph_->cells().size() + 1, 0);
  int64_t gradient = 0, statistic = 0;
  for (const int node : nodes_) {
    gradient_range_[node].begin = gradient;
    for (size_t i = 0; i < values_[node].size(); ++i)
      sums_[node].push_back(graph_->node(node).parameters[i].trainable
                                ? place(gradients_, gradient, values_[node][i])
                                : place(statistics_, statistic, values_[node][i]));
    gradient_range_[node].end = gradient;
    images_[node] = statistics_.narrow(0, statistic++, 1);
    for (size_t cell = graph_->node(node).cell + 1; cell < first_gradient_.size(); ++cell)
      first_gradient_[cell] = gradient;
  }
}

template <typename Visit>
void Parameters::each(Visit&& visit) const {
  for (const int node : nodes_)
    for (size_t i = 0; i < values_[node].size(); ++i)
      visit(graph_->node(node).parameters[i], node, i);
}

void Parameters::add_gradients(int node, const std::vector<at::Tensor>& gradients) {
  size_t next = 0;
  for (size_t i = 0; i < values_[node].size() && next < gradients.size(); ++i) {
    if (!graph_->node(node).parameters[i].trainable) continue;
    const at::Tensor& gradient = gradients[next++];
    if (gradient.defined()) add_scaled(sums_[node][i], gradient, 1);
  }
}

void Parameters::add_statistics(int node, const std::vector<at::Tensor>& measured, int64_t images) {
  if (measured.empty()) return;
  size_t next = 0;
  for (size_t i = 0; i < values_[node].size(); ++i)
    if (!graph_->node(node).parameters[i].trainable)
      add_scaled(sums_[node][i], measured[next++], static_cast<double>(images));
  with_numbers(images_[node], [images](auto* count) { *count += static_cast<double>(images); });
}

void Parameters::update_statistics() {
  each([this](const Parameter& parameter, int node, size_t i) {
    if (parameter.trainable) return;
    const double momentum = std::get<BatchNorm>(graph_->node(node).op).momentum;
    with_numbers(values_[node][i], [&]<typename T>(T* running) {
      const T* sums = sums_[node][i].data_ptr<T>();
      const double images = *images_[node].data_ptr<T>();
      for (int64_t channel = 0; images > 0 && channel < parameter.elements(); ++channel)
        running[channel] =
            static_cast<T>((1 - momentum) * running[channel] + momentum * (sums[channel] / images));
    });
  });
}

void Parameters::clear() {
  begun_.assign(begun_.size(), false);
  statistics_.zero_();
}

void Parameters::begin_gradients(int node) {
  if (begun_[node]) return;
  begun_[node] = true;
  const auto [begin, end] = gradient_range_[node];
  with_numbers(gradients_, [&](auto* numbers) { std::fill(numbers + begin, numbers + end, 0); });
}

void Parameters::begin_gradients_of_cell(int cell) {
  for (const int node : nodes_)
    if (graph_->node(node).cell == cell) begin_gradients(node);
}

at::Tensor Parameters::gradient_memory(int first_cell, int last_cell) const {
  const int64_t begin = first_gradient_[first_cell];
  return gradients_.narrow(0, begin, first_gradient_[last_cell] - begin);
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
  each([&](const Parameter& parameter, int node, size_t i) {
    if (parameter.trainable) found.emplace(parameter.name, place(memory, offset, values_[node][i]));
  });
  return found;
}

std::map<std::string, at::Tensor> Parameters::statistics() const {
  std::map<std::string, at::Tensor> found;
  each([&](const Parameter& parameter, int node, size_t i) {
    if (!parameter.trainable) found.emplace(parameter.name, values_[node][i]);
  });
  return found;
}

}  // namespace mpi4dl
