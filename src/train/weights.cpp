#include "train/weights.hpp"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <set>

#include "backend/precision.hpp"
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

/// Returns true for a zip archive, which torch.save writes.
bool is_archive(const std::string& path) {
  std::string begin(2, ' ');
  if (file_size(path) < static_cast<int64_t>(begin.size())) return false;
  read_range(path, 0, begin.data(), begin.size());
  return begin == "PK";
}

/// Returns what weights call a parameter: its name, or one that it has in the state_dict of the
/// model; an empty string where it is in none.
std::string name_in(const TensorSource& weights, const Model& model, const std::string& parameter) {
  const auto exported = model.exported.find(parameter);
  if (weights.tensors().contains(parameter) || exported == model.exported.end()) return parameter;
  for (const auto& [name, shape] : exported->second)
    if (weights.tensors().contains(name)) return name;
  return exported->second.empty() ? "" : exported->second.begin()->first;
}

/// Returns a shape without axes of one element, which a graph leaves out: 1x4x1x1 is 4.
std::vector<int64_t> without_ones(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

/// Returns whether a tensor of this name and shape holds the values of a parameter.
bool holds(const Model& model, const std::string& parameter, const std::vector<int64_t>& shape,
           const std::string& name, const std::vector<int64_t>& stored) {
  const auto exported = model.exported.find(parameter);
  if (exported == model.exported.end()) return without_ones(stored) == without_ones(shape);
  if (stored == shape) return true;
  const auto known = exported->second.find(name);
  return known != exported->second.end() && known->second == stored;
}

/// Returns whether a parameter is not read from these weights.
bool starts_anew(const Model& model, const TensorSource& weights, const std::string& parameter,
                 const std::vector<int64_t>& shape) {
  const std::string name = name_in(weights, model, parameter);
  if (model.fresh.contains(parameter) || name.empty()) return true;
  const auto found = weights.tensors().find(name);
  return model.resized.contains(parameter) &&
         (found == weights.tensors().end() ||
          !holds(model, parameter, shape, name, found->second.shape));
}

/// Returns the tensors of the model's own file where they have a parameter that weights need not
/// have: one in no state_dict, or a constant of a graph; null otherwise.
const TensorSource* own_tensors(const Model& model, const TensorSource* weights,
                                const std::string& parameter) {
  const std::string name = weights == nullptr ? parameter : name_in(*weights, model, parameter);
  if (name.empty()) return model.weights.get();
  if (weights != nullptr && weights->tensors().contains(name)) return nullptr;
  const bool constant =
      model.constants != nullptr && model.constants->tensors().contains(parameter);
  return constant ? model.constants.get() : nullptr;
}

/// Loads a weight, unless it starts anew.
void load_one(const Model& model, const TensorSource* weights, const std::string& name,
              const at::Tensor& values) {
  if (const TensorSource* own = own_tensors(model, weights, name))
    copy_tensor(*own, name, values);
  else if (weights != nullptr && !starts_anew(model, *weights, name, values.sizes().vec()))
    values.copy_(weights->read(name_in(*weights, model, name)).reshape(values.sizes()));
}

/// Loads the weights among the tensors of the stages that this rank holds, and nothing else.
void load_held(const std::string& path, const Model& model, const std::map<int, TensorMap>& held,
               const Communicator& world) {
  run_together(world, [&] {
    const std::shared_ptr<const TensorSource> weights =
        path.empty() ? model.weights : open_weights(path);
    if (weights != nullptr) {
      check_weights(*weights, path.empty() ? model.name : path, model);
      weights->check_files(world.rank(), world.size());
    }
    for (const auto& [stage, tensors] : held)
      for (const auto& [name, values] : tensors)
        if (is_weight(name)) load_one(model, weights.get(), name, values);
  });
}

/// Returns the names of a model's file that are no parameters.
std::set<std::string> further_names(const Model& model) {
  std::set<std::string> names(model.carried.begin(), model.carried.end());
  for (const auto& [parameter, all] : model.exported)
    for (const auto& [name, shape] : all) names.insert(name);
  if (model.constants != nullptr)
    for (const auto& [name, info] : model.constants->tensors()) names.insert(name);
  return names;
}

}  // namespace

bool is_weight(const std::string& name) {
  return is_parameter_name(name);
}

std::unique_ptr<TensorSource> open_weights(const std::string& path) {
  validate(std::filesystem::exists(path), "there are no weights '{}'", path);
  if (std::filesystem::is_directory(path))
    return std::make_unique<Checkpoint>(find_checkpoint(path));
  if (is_archive(path)) return std::make_unique<TorchFile>(path);
  return std::make_unique<SafetensorsFile>(path);
}

std::vector<std::string> class_names(const std::string& path) {
  if (path.empty()) return {};
  const std::unique_ptr<TensorSource> weights = open_weights(path);
  const auto* checkpoint = dynamic_cast<const Checkpoint*>(weights.get());
  return checkpoint == nullptr ? std::vector<std::string>() : checkpoint->manifest().classes;
}

void check_weights(const TensorSource& weights, const std::string& path, const Model& model) {
  std::set<std::string> known = further_names(model);
  for (const Node& node : model.graph.nodes())
    for (const Parameter& parameter : node.parameters) {
      known.insert(parameter.name);
      if (starts_anew(model, weights, parameter.name, parameter.shape) ||
          own_tensors(model, &weights, parameter.name) != nullptr)
        continue;
      const std::string name = name_in(weights, model, parameter.name);
      const auto found = weights.tensors().find(name);
      validate(found != weights.tensors().end(),
               "'{}' has no {}: these are weights of another model", path, name);
      validate(holds(model, parameter.name, parameter.shape, name, found->second.shape),
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

void load_weights(const std::string& path, const Model& model,
                  const std::map<int, std::unique_ptr<Parameters>>& parameters,
                  const Communicator& world) {
  std::map<int, TensorMap> held;
  for (const auto& [stage, values] : parameters) {
    held[stage] = values->trained();
    held[stage].merge(values->statistics());
    held[stage].merge(values->frozen());
  }
  load_held(path, model, held, world);
}

void load_weights(const std::string& path, const Model& model, Trainer& trainer,
                  const Communicator& world) {
  load_held(path, model, trainer.state(), world);
  trainer.restore(0);
}

TensorMap all_weights(const TensorSource& source) {
  TensorMap weights;
  const std::string carried = kCarried;
  const auto* checkpoint = dynamic_cast<const Checkpoint*>(&source);
  const ExportedNames exported =
      checkpoint == nullptr ? ExportedNames() : checkpoint->manifest().exported;
  for (const auto& [name, info] : source.tensors()) {
    if (name.starts_with(carried)) weights[name.substr(carried.size())] = source.read(name);
    if (!is_weight(name)) continue;
    at::Tensor values = source.read(name);
    if (checkpoint != nullptr) values = values.to(wide_type(info.type));
    if (const auto others = exported.find(name); others == exported.end())
      weights[name] = values;
    else
      for (const auto& [other, shape] : others->second) weights[other] = values.reshape(shape);
  }
  return weights;
}

void carry_along(const std::string& path, Model& model) {
  model.state = open_weights(path);
  for (const auto& [name, info] : model.state->tensors())
    if (name.starts_with(kCarried) || name.ends_with(".num_batches_tracked"))
      model.carried.push_back(name);
}

}  // namespace mpi4dl
