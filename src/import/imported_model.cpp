#include "import/imported_model.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "import/cells.hpp"
#include "import/evaluator.hpp"
#include "import/exported_program.hpp"
#include "import/torchscript.hpp"

namespace mpi4dl {
namespace {

/// Reads the parameters of a graph from tensors of a model, in the graph's shapes.
class GraphWeights : public TensorSource {
 public:
  GraphWeights(const Graph& graph, std::shared_ptr<ProgramTensors> tensors, TensorMap made)
      : tensors_(std::move(tensors)), made_(std::move(made)) {
    for (const Node& node : graph.nodes())
      for (const Parameter& parameter : node.parameters) add(parameter);
  }

  const std::map<std::string, TensorInfo>& tensors() const override { return infos_; }
  at::Tensor read(const std::string& name) const override {
    const auto made = made_.find(name);
    return made == made_.end() ? tensors_->read(name).reshape(infos_.at(name).shape) : made->second;
  }

 private:
  void add(const Parameter& parameter) {
    const bool made = made_.contains(parameter.name);
    infos_[parameter.name] = {made ? at::kDouble : tensors_->tensors().at(parameter.name).type,
                              parameter.shape};
  }

  std::shared_ptr<ProgramTensors> tensors_;
  std::map<std::string, TensorInfo> infos_;
  TensorMap made_;  // not in the file
};

/// Gives each tensor that has several names the first of them everywhere.
std::map<std::string, std::vector<std::string>> unify_names(Program& program) {
  std::map<std::string, std::vector<std::string>> names = program.tensors->aliases();
  std::map<std::string, std::string> first;
  for (const auto& [name, all] : names)
    for (const std::string& each : all) first[each] = name;
  for (auto& [value, tensor] : program.state) tensor = first.at(tensor);
  return names;
}

std::vector<std::string> in_state_dict(const ProgramTensors& tensors,
                                       const std::vector<std::string>& names) {
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [&](const std::string& name) { return tensors.stored(name).in_state_dict; });
  return found;
}

std::set<std::string> parameter_names(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes())
    for (const Parameter& parameter : node.parameters) names.insert(parameter.name);
  return names;
}

/// Sorts the names of the state_dict by whether the graph has the tensor.
void share_out_names(const ProgramTensors& tensors,
                     const std::map<std::string, std::vector<std::string>>& names,
                     ImportedModel& model) {
  std::set<std::string> read = parameter_names(model.graph);
  for (const auto& [name, all] : names) {
    const std::vector<std::string> known = in_state_dict(tensors, all);
    if (read.erase(name) == 0)
      model.carried.insert(model.carried.end(), known.begin(), known.end());
    else if (known != std::vector{name})
      model.aliases[name] = known;
  }
  for (const std::string& made : read) model.aliases[made] = {};
}

std::vector<std::string> notes_on(const Program& program, const Evaluation& evaluation) {
  std::vector<std::string> notes;
  if (evaluation.evaluation)
    notes.emplace_back(
        "the model was exported as it is in evaluation; it is trained with batch statistics and "
        "dropout, but drop path and auxiliary outputs are missing in such a file: export "
        "model.train()");
  if (program.more_results)
    notes.emplace_back("the model has several outputs; the first one is taken");
  return notes;
}

}  // namespace

bool is_torchscript(const std::string& path) {
  return path.ends_with(".pt") || path.ends_with(".pth");
}

ImportedModel import_model(const std::string& path, const ImportOptions& options) {
  Program program =
      is_torchscript(path) ? read_torchscript(path, options.image) : read_exported_program(path);
  const auto names = unify_names(program);
  try {
    Evaluation evaluation = evaluate(program, options.image);
    ImportedModel model{.graph = cut_into_cells(evaluation.draft, options.cells),
                        .state = program.tensors,
                        .notes = notes_on(program, evaluation)};
    model.weights =
        std::make_shared<GraphWeights>(model.graph, program.tensors, std::move(evaluation.made));
    share_out_names(*program.tensors, names, model);
    return model;
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("'{}' cannot be imported at {}: {}", path,
                                 to_string(options.image), error.what()));
  }
}

Extents exported_image_size(const std::string& path) {
  if (is_torchscript(path)) {
    check_torchscript(path);
    return {-1, -1};
  }
  const Program program = read_exported_program(path);
  const auto sizes = program.sizes.find(program.image);
  validate(sizes != program.sizes.end() && sizes->second.size() >= 4,
           "'{}' cannot be imported: its input is no image (N, C, H, W)", path);
  return {sizes->second.begin() + 2, sizes->second.end()};
}

}  // namespace mpi4dl
