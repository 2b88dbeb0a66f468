#include "train/model.hpp"

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "base/error.hpp"
#include "graph/text.hpp"
#include "train/checkpoint_folder.hpp"

namespace mpi4dl {
TensorMap Model::carried_tensors() const {
  const std::string prefix = kCarried;
  TensorMap found;
  for (const std::string& key : carried)
    found[key.starts_with(prefix) ? key.substr(prefix.size()) : key] = state->read(key);
  return found;
}

std::string checkpoint_with_graph(const std::string& path) try {
  if (!std::filesystem::is_directory(path)) return "";
  const Checkpoint checkpoint(find_checkpoint(path));
  return checkpoint.manifest().files.contains(kGraphFile) ? checkpoint.folder() : "";
} catch (const Error&) {
  return "";
}

Model model_of(const std::string& checkpoint) {
  const auto source = std::make_shared<const Checkpoint>(checkpoint);
  const Manifest& manifest = source->manifest();
  Model model{.name = manifest.model,
              .graph = parse_graph(source->graph().value()),
              .own = true,
              .exported = manifest.exported,
              .state = source};
  for (const auto& [name, info] : source->tensors())
    if (name.starts_with(kCarried)) model.carried.push_back(name);
  return model;
}

}  // namespace mpi4dl
