#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "cli/add_command.hpp"
#include "cli/checks.hpp"
#include "cli/model_file.hpp"
#include "data/image_size.hpp"
#include "graph/parameter_names.hpp"
#include "graph/text.hpp"
#include "import/imported_model.hpp"
#include "storage/replacement_file.hpp"
#include "storage/safetensors.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

struct ImportFlags {
  std::string file, image_size, graph_file;
  int cells = 0;
};

Extents image_of(const ImportFlags& flags) {
  if (!flags.image_size.empty()) {
    const ImageSize size = parse_image_size("--image-size", flags.image_size);
    return {size.height, size.width};
  }
  const Extents exported = exported_image_size(flags.file);
  validate(std::ranges::find(exported, -1) == exported.end(),
           "'{}' does not say for images of which size it is; say so with --image-size",
           flags.file);
  return exported;
}

std::string counted(int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Counts the work of the nodes of each cell.
std::vector<int64_t> work_of_cells(const Graph& graph) {
  std::vector<int64_t> work(graph.cells().size());
  for (const Node& node : graph.nodes())
    work[node.cell] += flops(graph, node, positions(node.shape.space));
  return work;
}

void print_cells(const Graph& graph) {
  const std::vector<int64_t> work = work_of_cells(graph);
  const auto whole = static_cast<double>(std::max<int64_t>(flops_per_image(graph), 1));
  std::vector<int> nodes(work.size());
  std::vector<Shape> results(work.size());
  for (size_t id = 1; id < graph.nodes().size(); ++id) {
    ++nodes[graph.nodes()[id].cell];
    results[graph.nodes()[id].cell] = graph.nodes()[id].shape;
  }
  fmt::print("{}:\n", counted(static_cast<int64_t>(work.size()), "cell"));
  for (size_t cell = 0; cell < work.size(); ++cell)
    fmt::print("  {:<32} {:>4} operators {:>5.1f} % of the work, ends with {}\n",
               graph.cells()[cell], nodes[cell], 100 * static_cast<double>(work[cell]) / whole,
               to_string(results[cell]));
}

void print_operators(const Graph& graph) {
  std::map<std::string, int64_t> counts;
  for (size_t id = 1; id < graph.nodes().size(); ++id) ++counts[kind(graph.nodes()[id].op)];
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts) texts.push_back(fmt::format("{} {}", count, name));
  fmt::print("operators: {}\n", fmt::join(texts, ", "));
}

void print_parameters(const ImportedModel& model) {
  std::map<std::string, int64_t> frozen;
  for (const Node& node : model.graph.nodes())
    for (const Parameter& parameter : node.parameters)
      if (parameter.kind == ParameterKind::frozen) frozen[parameter.name] = parameter.elements();
  int64_t frozen_elements = 0;
  for (const auto& [name, elements] : frozen) frozen_elements += elements;
  fmt::print("parameters: {} trained, {} frozen; {} of the state_dict that nothing reads\n",
             model.graph.parameter_count(), frozen_elements,
             counted(static_cast<int64_t>(model.carried.size()), "tensor"));
}

/// Returns which rows of the image the middle row of a map depends on, pooled values left aside.
Interval rows_read(const Graph& graph, int node, int axis) {
  std::vector<Interval> needed(node + 1);
  const int64_t middle = graph.node(node).shape.space[axis] / 2;
  needed[node] = {middle, middle + 1};
  for (int id = node; id > 0; --id) {
    if (needed[id].empty()) continue;
    for (const int input : graph.node(id).inputs) {
      const Shape& shape = graph.node(input).shape;
      if (!shape.spatial()) continue;
      const int64_t length = shape.space[axis];
      const Interval rows =
          intersect(needed_rows(graph.node(id).op, {axis, needed[id], length}), {0, length});
      needed[input] = needed[input].empty() || rows.empty()
                          ? Interval{std::max(needed[input].begin, rows.begin),
                                     std::max(needed[input].end, rows.end)}
                          : Interval{std::min(needed[input].begin, rows.begin),
                                     std::max(needed[input].end, rows.end)};
    }
  }
  return needed[0];
}

/// Returns the last map that is pooled or flattened, or is the output.
int last_map(const Graph& graph) {
  if (graph.node(graph.output()).shape.spatial()) return graph.output();
  int found = 0;
  for (const Node& node : graph.nodes())
    for (const int input : node.inputs)
      if (!node.shape.spatial() && graph.node(input).shape.spatial())
        found = std::max(found, input);
  return found;
}

void print_receptive_field(const Graph& graph) {
  const int map = last_map(graph);
  Extents field;
  for (int axis = 0; axis < static_cast<int>(graph.node(map).shape.space.size()); ++axis)
    field.push_back(rows_read(graph, map, axis).length());
  fmt::print("receptive field of {} ({}): {} pixels{}\n", graph.node(map).name,
             to_string(graph.node(map).shape), to_string(field),
             field == graph.node(0).shape.space ? ", the whole image" : "");
}

/// Tells what is computed in one place where there are many tiles.
void print_small_maps(const Graph& graph) {
  const Node* smallest = &graph.nodes().front();
  for (const Node& node : graph.nodes())
    if (node.shape.spatial() &&
        std::ranges::min(node.shape.space) < std::ranges::min(smallest->shape.space))
      smallest = &node;
  fmt::print(
      "tiles: the smallest map is {} ({}); with more rows or columns of tiles than it has, maps "
      "like "
      "it are on one tile\n",
      to_string(smallest->shape), smallest->name);
  for (const Node& node : graph.nodes())
    if (std::holds_alternative<Flatten>(node.op))
      fmt::print("tiles: {} puts all {} on one tile\n", node.name,
                 to_string(graph.node(node.inputs[0]).shape));
}

/// Writes what is never trained: parameters that weights may lack, and what a state_dict has
/// besides.
void write_constants(const ImportedModel& model, const std::string& file) {
  TensorMap constants;
  for (const std::string& name : constant_parameters(model.graph))
    constants[name] = model.weights->read(name);
  for (const std::string& name : model.carried)
    if (is_weight(name)) constants[name] = model.state->read(name);
  std::filesystem::remove(file);  // of another graph
  if (constants.empty()) return;
  write_safetensors(file, constants);
  fmt::print("what is never trained is in {}, which belongs to the graph\n", file);
}

int run_import(Session& session, const ImportFlags& flags) {
  session.doing("importing " + flags.file);
  const ImportedModel model =
      import_model(flags.file, {.image = image_of(flags), .cells = flags.cells});
  const Graph& graph = model.graph;
  fmt::print("{}: images of {}, output {}\n", flags.file, to_string(graph.node(0).shape),
             to_string(graph.node(graph.output()).shape));
  print_cells(graph);
  print_operators(graph);
  print_parameters(model);
  fmt::print("{:.3g} GFLOP an image\n", static_cast<double>(flops_per_image(graph)) / 1e9);
  print_receptive_field(graph);
  print_small_maps(graph);
  for (const std::string& note : model.notes) fmt::print("note: {}\n", note);
  if (!flags.graph_file.empty()) {
    write_constants(model, constants_file(flags.graph_file));
    replace_file(flags.graph_file, to_text(graph));
    fmt::print("the graph is in {}\n", flags.graph_file);
  }
  return 0;
}

}  // namespace

void add_import(CLI::App& app, Command& chosen) {
  auto [command, flags] = add_command<ImportFlags>(
      app, chosen, "import",
      "Say what a PyTorch model that torch.export or torch.jit saved is here, or why it cannot be "
      "imported",
      run_import, [](const ImportFlags& given, int ranks) {
        validate(ranks == 1, "import needs one process only; start it without mpirun");
        validate(std::filesystem::is_regular_file(given.file), "there is no model '{}'",
                 given.file);
      });
  command
      .add_option("file", flags.file,
                  "What torch.export.save wrote, such as net.pt2, or TorchScript, such as net.pt")
      ->required();
  default_in_words(command.add_option("--image-size", flags.image_size,
                                      "Images that will be trained: 512 or 512x768"),
                   "as exported");
  default_in_words(
      command.add_option("--cells", flags.cells, "About how many cells to cut the model into")
          ->check(at_least(1)),
      "modules with up to a sixteenth of the work");
  default_in_words(
      command.add_option("--to-graph", flags.graph_file,
                         "Write the graph as text, and beside it what is never trained"),
      "none");
}

}  // namespace mpi4dl
