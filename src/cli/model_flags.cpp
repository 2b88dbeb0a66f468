#include "cli/model_flags.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/checks.hpp"
#include "cli/image_size.hpp"
#include "models/registry.hpp"

namespace mpi4dl {
namespace {

/// A flag that another model has may only say what is its default anyway.
void check_flags_of_other_models(const ModelOptions& given) {
  const ModelOptions usual;
  const auto refuse = [&](const char* model, const std::string& flag, const char* instead) {
    throw UsageError(fmt::format("{} is about {}, but --model is {}, which has {}", flag, model,
                                 given.name, instead));
  };
  if (given.name == "resnet") {
    const char* instead = "--depth and --resnet-version";
    if (given.num_layers != usual.num_layers)
      refuse("AmoebaNet", fmt::format("--num-layers {}", given.num_layers), instead);
    if (given.num_filters != usual.num_filters)
      refuse("AmoebaNet", fmt::format("--num-filters {}", given.num_filters), instead);
  } else if (given.name == "amoebanet") {
    const char* instead = "--num-layers and --num-filters";
    if (given.depth != usual.depth)
      refuse("ResNet", fmt::format("--depth {}", given.depth), instead);
    if (given.resnet_version != usual.resnet_version)
      refuse("ResNet", fmt::format("--resnet-version {}", given.resnet_version), instead);
    if (given.global_pool_head) refuse("ResNet", "--global-pool-head", instead);
  }
}

}  // namespace

void ModelFlags::add_to(CLI::App& command) {
  command.option_defaults()->group("Model");
  command.add_option("--model", options.name, "One of: " + CLI::detail::join(model_names(), ", "));
  command.add_option("--image-size", image_size, "Pixels: 512, or height x width: 512x768");
  command.add_option("--num-classes", options.classes, "Classes")->check(at_least(1));
  command.add_option("--dropout", options.dropout, "Share of what the last layer reads to drop")
      ->check(at_least(0));
  command.add_option("--resnet-version", options.resnet_version, "1 (depth 6n+2) or 2 (9n+2)")
      ->check(CLI::IsMember({1, 2}));
  command.add_option("--depth", options.depth, "Layers of a ResNet")->check(at_least(1));
  command.add_flag("--global-pool-head", options.global_pool_head,
                   "ResNet: pool the whole image, so that parameters do not depend on its size");
  command.add_option("--num-layers", options.num_layers, "Normal cells of an AmoebaNet")
      ->check(at_least(1));
  command.add_option("--num-filters", options.num_filters, "Filters of an AmoebaNet")
      ->check(at_least(1));
}

ModelOptions ModelFlags::model() const {
  check_flags_of_other_models(options);
  validate(options.dropout < 1, "--dropout {} leaves nothing to learn from; use less than 1",
           options.dropout);
  ModelOptions model = options;
  const ImageSize size = parse_image_size(image_size);
  model.image = {size.height, size.width};
  return model;
}

}  // namespace mpi4dl
