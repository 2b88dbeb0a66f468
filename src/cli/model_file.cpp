#include "cli/model_file.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "graph/edit.hpp"
#include "graph/parameter_names.hpp"
#include "graph/text.hpp"
#include "import/imported_model.hpp"
#include "storage/safetensors.hpp"

namespace mpi4dl {
namespace {

Graph read_graph(const std::string& path) try {
  return parse_graph(read_text(path));
} catch (const UsageError& error) {
  throw UsageError(fmt::format("{}: {}", path, error.what()));
}

Model open_graph(const std::string& path, const Extents& size) {
  Model model{.name = path, .graph = read_graph(path), .own = true};
  if (const std::string constants = constants_file(path); std::filesystem::exists(constants))
    model.constants = std::make_shared<SafetensorsFile>(constants);
  for (const std::string& name : constant_parameters(model.graph))
    if (model.constants == nullptr || !model.constants->tensors().contains(name)) {
      model.notes.push_back(
          fmt::format("{} is never trained, and {} has no values of it: without weights that have "
                      "it, it stays as it starts",
                      name, constants_file(path)));
      break;
    }
  if (!size.empty() && size != model.image()) model.graph = with_image_size(model.graph, size);
  return model;
}

/// Returns the names and shapes that parameters have in the state_dict, where these are not their
/// own.
ExportedNames exported_names(const ImportedModel& imported) {
  ExportedNames exported;
  for (const Node& node : imported.graph.nodes())
    for (const Parameter& parameter : node.parameters) {
      const auto others = imported.aliases.find(parameter.name);
      std::map<std::string, std::vector<int64_t>> all;
      if (others == imported.aliases.end())
        all[parameter.name] = imported.state->tensors().at(parameter.name).shape;
      else
        for (const std::string& name : others->second)
          all[name] = imported.state->tensors().at(name).shape;
      if (all != decltype(all){{parameter.name, parameter.shape}})
        exported[parameter.name] = std::move(all);
    }
  return exported;
}

Model open_exported(const std::string& path, Extents size, int cells) {
  if (size.empty()) size = exported_image_size(path);
  validate(std::ranges::find(size, -1) == size.end(),
           "'{}' does not say for images of which size it is; say so with --image-size", path);
  ImportedModel imported = import_model(path, {.image = std::move(size), .cells = cells});
  ExportedNames exported = exported_names(imported);
  return {.name = path,
          .graph = std::move(imported.graph),
          .own = true,
          .weights = std::move(imported.weights),
          .exported = std::move(exported),
          .state = std::move(imported.state),
          .carried = std::move(imported.carried),
          .notes = std::move(imported.notes)};
}

}  // namespace

std::string constants_file(const std::string& graph_file) {
  return graph_file + ".safetensors";
}

bool is_model_file(const std::string& name) {
  return name.ends_with(".graph") || is_for_one_size(name);
}

bool is_for_one_size(const std::string& name) {
  return name.ends_with(".pt2") || is_torchscript(name);
}

Model open_model(const std::string& path, const Extents& size, int cells) {
  validate(std::filesystem::is_regular_file(path), "there is no model '{}'", path);
  if (is_for_one_size(path)) return open_exported(path, size, cells);
  validate(cells == 0, "--cells {}: {} says itself which cells it has", cells, path);
  return open_graph(path, size);
}

}  // namespace mpi4dl
