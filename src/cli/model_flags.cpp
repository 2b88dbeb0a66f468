#include "cli/model_flags.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.hpp"
#include "cli/checks.hpp"
#include "cli/model_file.hpp"
#include "data/image_size.hpp"
#include "graph/edit.hpp"
#include "graph/parameter_names.hpp"
#include "models/registry.hpp"

namespace mpi4dl {
namespace {

/// Throws UsageError where a flag of another model says something else than its default. `own`: the
/// model comes from a file.
void check_flags_of_other_models(const ModelOptions& given, const std::string& name, bool own) {
  const ModelOptions usual;
  const bool resnet = !own && name == "resnet", amoebanet = !own && name == "amoebanet";
  const auto refuse = [&](const char* model, const std::string& flag) {
    const std::string instead = resnet      ? "which has --depth and --resnet-version"
                                : amoebanet ? "which has --num-layers and --num-filters"
                                            : "a file that says all of it";
    throw UsageError(
        fmt::format("{} is about {}, but --model is {}, {}", flag, model, name, instead));
  };
  if (own || resnet) {
    if (given.num_layers != usual.num_layers)
      refuse("AmoebaNet", fmt::format("--num-layers {}", given.num_layers));
    if (given.num_filters != usual.num_filters)
      refuse("AmoebaNet", fmt::format("--num-filters {}", given.num_filters));
  }
  if (own || amoebanet) {
    if (given.depth != usual.depth) refuse("ResNet", fmt::format("--depth {}", given.depth));
    if (given.resnet_version != usual.resnet_version)
      refuse("ResNet", fmt::format("--resnet-version {}", given.resnet_version));
    if (given.global_pool_head) refuse("ResNet", "--global-pool-head");
  }
  if (own && given.dropout != usual.dropout)
    refuse("ResNet and AmoebaNet", fmt::format("--dropout {}", given.dropout));
}

Extents extents_of(const std::string& image_size) {
  const ImageSize size = parse_image_size("--image-size", image_size);
  return {size.height, size.width};
}

/// Gives the model so many classes; the layer that makes them starts anew where it had others.
void set_classes(Model& model, int64_t classes) {
  if (classes == model.classes()) return;
  model.graph = with_classes(model.graph, classes);
  for (const Parameter& parameter : class_layer(model.graph).parameters) {
    model.resized.insert(parameter.name);
    if (const auto found = model.exported.find(parameter.name); found != model.exported.end())
      for (auto& [name, shape] : found->second) shape = parameter.shape;
  }
}

}  // namespace

void ModelFlags::add_to(CLI::App& command) {
  command.option_defaults()->group("Model");
  model_ = command.add_option(
      "--model", options.name,
      "Architecture: " + CLI::detail::join(model_names(), ", ") +
          ", or a file: .graph (text), .pt2 (of torch.export) or .pt (TorchScript)");
  size_ = command.add_option("--image-size", image_size,
                             "Image size in pixels: 512, or height x width: 512x768; a model's "
                             "file has its own");
  classes_ = command
                 .add_option("--num-classes", options.classes,
                             "Number of classes; a model's file has its own, and another number "
                             "makes its last layer start anew")
                 ->check(at_least(1));
  default_in_words(
      command
          .add_option("--cells", cells,
                      "About how many parts the model of a .pt2 or .pt file is cut into, "
                      "which stages consist of")
          ->check(at_least(1)),
      "its larger modules");
  command.add_option("--dropout", options.dropout, "Dropout probability before the last layer")
      ->check(at_least(0));
  command
      .add_option("--resnet-version", options.resnet_version,
                  "ResNet: version 1 (depth 6n+2) or 2 (9n+2)")
      ->check(CLI::IsMember({1, 2}));
  command.add_option("--depth", options.depth, "ResNet: number of layers")->check(at_least(1));
  command.add_flag("--global-pool-head", options.global_pool_head,
                   "ResNet: pool the whole image, so that parameters do not depend on its size");
  command.add_option("--num-layers", options.num_layers, "AmoebaNet: number of normal cells")
      ->check(at_least(1));
  command.add_option("--num-filters", options.num_filters, "AmoebaNet: number of filters")
      ->check(at_least(1));
}

void ModelFlags::add_reinit_to(CLI::App& command) {
  command
      .add_option("--reinit", reinit,
                  "Parameters that start anew instead of from given weights: names such as "
                  "'head.*', where * is anything")
      ->delimiter(',')
      ->allow_extra_args(false);
}

bool ModelFlags::is_chosen() const {
  return model_ != nullptr && model_->count() > 0;
}

Model ModelFlags::open(const Extents& size) const {
  validate(cells == 0 || (checkpoint.empty() && is_model_file(options.name)),
           "--cells {}: {} has its own cells", cells,
           checkpoint.empty() ? options.name : checkpoint);
  if (!checkpoint.empty()) {
    Model model = model_of(checkpoint);
    if (size.empty() || size == model.image()) return model;
    validate(!is_for_one_size(model.name),
             "{} holds {} as it is for images of {}; for another --image-size give its file with "
             "--model",
             checkpoint, model.name, to_string(model.image()));
    model.graph = with_image_size(model.graph, size);
    return model;
  }
  if (is_model_file(options.name)) return open_model(options.name, size, cells);
  validate(!std::filesystem::is_regular_file(options.name),
           "{} is no model that can be read: it is neither what torch.export saves (.pt2), nor "
           "TorchScript (.pt), nor a graph (.graph)",
           options.name);
  ModelOptions built_in = options;
  built_in.image = size.empty() ? extents_of(image_size) : size;
  return {.name = options.name, .graph = build_model(built_in)};
}

Model ModelFlags::build() const {
  const bool given = size_ != nullptr && size_->count() > 0;
  return build(given ? extents_of(image_size) : Extents{});
}

Model ModelFlags::build(const Extents& size) const {
  check_flags_of_other_models(options, checkpoint.empty() ? options.name : "that of " + checkpoint,
                              !checkpoint.empty() || is_model_file(options.name));
  validate(options.dropout < 1, "--dropout {} leaves nothing to learn from; use less than 1",
           options.dropout);
  Model model = open(size);
  if (model.own && classes_ != nullptr && classes_->count() > 0)
    set_classes(model, options.classes);
  for (const std::string& pattern : reinit)
    model.fresh.merge(matching_parameters(model.graph, pattern, AmongParameters::all,
                                          fmt::format("--reinit '{}'", pattern)));
  return model;
}

std::string image_size_text(const Graph& graph) {
  const Extents& size = graph.shape(graph.input()).space;
  return size.size() == 2 && size[0] == size[1] ? std::to_string(size[0]) : to_string(size);
}

}  // namespace mpi4dl
