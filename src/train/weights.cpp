#include "train/weights.hpp"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "comm/agreement.hpp"
#include "storage/safetensors.hpp"
#include "storage/torch_file.hpp"
#include "train/checkpoint.hpp"
#include "train/checkpoint_folder.hpp"

namespace mpi4dl {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  return shape.empty() ? "one number" : fmt::format("{}", fmt::join(shape, "x"));
}

/// Every zip archive begins so, and with it what torch.save writes.
bool is_archive(const std::string& path) {
  std::string begin(2, ' ');
  if (file_size(path) < static_cast<int64_t>(begin.size())) return false;
  read_range(path, 0, begin.data(), begin.size());
  return begin == "PK";
}

/// Only the weights among the tensors that this rank holds.
void load_held(const std::string& path, const Graph& graph, const TensorMap& held,
               const Communicator& world) {
  run_together(world, [&] {
    const std::unique_ptr<TensorSource> weights = open_weights(path);
    check_weights(*weights, path, graph);
    weights->check_files(world.rank(), world.size());
    for (const auto& [name, values] : held)
      if (is_weight(name)) copy_tensor(*weights, name, values);
  });
}

}  // namespace

bool is_weight(const std::string& name) {
  return name.find('/') == std::string::npos && !name.ends_with(".num_batches_tracked");
}

std::unique_ptr<TensorSource> open_weights(const std::string& path) {
  validate(std::filesystem::exists(path), "there are no weights '{}'", path);
  if (std::filesystem::is_directory(path))
    return std::make_unique<Checkpoint>(find_checkpoint(path));
  if (is_archive(path)) return std::make_unique<TorchFile>(path);
  return std::make_unique<SafetensorsFile>(path);
}

std::vector<std::string> class_names(const std::string& path) {
  const std::unique_ptr<TensorSource> weights = open_weights(path);
  const auto* checkpoint = dynamic_cast<const Checkpoint*>(weights.get());
  return checkpoint == nullptr ? std::vector<std::string>() : checkpoint->manifest().classes;
}

void check_weights(const TensorSource& weights, const std::string& path, const Graph& graph) {
  std::set<std::string> known;
  for (const Node& node : graph.nodes())
    for (const Parameter& parameter : node.parameters) {
      known.insert(parameter.name);
      const auto found = weights.tensors().find(parameter.name);
      validate(found != weights.tensors().end(),
               "'{}' has no {}: these are weights of another model", path, parameter.name);
      validate(found->second.shape == parameter.shape,
               "'{}' has a {} of {}, but the model's is {}: these are weights of another model",
               path, parameter.name, shape_text(found->second.shape), shape_text(parameter.shape));
    }
  for (const auto& [name, info] : weights.tensors())
    validate(!is_weight(name) || known.contains(name),
             "'{}' has a {}, which the model has not: these are weights of another model", path,
             name);
}

void copy_tensor(const TensorSource& source, const std::string& name, const at::Tensor& to) {
  const auto found = source.tensors().find(name);
  ensure(found != source.tensors().end(), "there is no {} in it", name);
  ensure(found->second.shape == to.sizes().vec(), "its {} is {} instead of {}", name,
         shape_text(found->second.shape), shape_text(to.sizes().vec()));
  to.copy_(source.read(name));
}

void load_weights(const std::string& path, const Graph& graph,
                  const std::map<int, std::unique_ptr<Parameters>>& parameters,
                  const Communicator& world) {
  TensorMap held;
  for (const auto& [stage, values] : parameters) {
    held.merge(values->trainable());
    held.merge(values->statistics());
  }
  load_held(path, graph, held, world);
}

void load_weights(const std::string& path, Trainer& trainer, const Communicator& world) {
  TensorMap held;
  for (auto& [stage, state] : trainer.state()) held.merge(TensorMap(state));
  load_held(path, trainer.graph(), held, world);
  trainer.go_on(0);
}

}  // namespace mpi4dl
