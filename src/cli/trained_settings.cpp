#include "cli/trained_settings.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>

#include "base/error.hpp"
#include "cli/image_size.hpp"
#include "train/checkpoint.hpp"
#include "train/checkpoint_folder.hpp"

namespace mpi4dl {
namespace {

std::string yes_or_no(bool value) {
  return value ? "true" : "false";
}

/// 512x512 is 512.
std::string shortest(const std::string& image_size) {
  const ImageSize size = parse_image_size(image_size);
  return size.height == size.width ? std::to_string(size.height)
                                   : fmt::format("{}x{}", size.height, size.width);
}

void set(CLI::Option& option, const std::string& value) {
  const bool is_off = value == (option.get_expected_max() == 0 ? "false" : "0");
  if (is_off) return;  // as it is without the flag
  option.add_result(value);
  option.run_callback();
}

}  // namespace

Manifest::Settings model_settings(const ModelFlags& model, const ViewFlags& view) {
  const ModelOptions& options = model.options;
  return {{"--model", options.name},
          {"--image-size", shortest(model.image_size)},
          {"--num-classes", std::to_string(options.classes)},
          {"--resnet-version", std::to_string(options.resnet_version)},
          {"--depth", std::to_string(options.depth)},
          {"--global-pool-head", yes_or_no(options.global_pool_head)},
          {"--num-layers", std::to_string(options.num_layers)},
          {"--num-filters", std::to_string(options.num_filters)},
          {"--fit", view.fit},
          {"--level", std::to_string(view.level)},
          {"--mpp", fmt::format("{}", view.micrometres)}};
}

Manifest::Settings decisive_settings(const TrainedWith& with) {
  Manifest::Settings settings = model_settings(with.model, with.view);
  settings["--app"] = with.app;
  settings["--optimizer"] = with.training.optimizer;
  settings["--dtype"] = with.training.dtype;
  settings["--batch-norm"] = with.training.batch_norm;
  settings["--seed"] = std::to_string(with.training.trainer.seed);
  settings["an effective batch of"] = std::to_string(with.effective_batch);
  settings["this number of images:"] = std::to_string(with.images);
  const std::string& name = with.model.options.name;
  if (name == "amoebanet")
    for (const char* flag : {"--resnet-version", "--depth", "--global-pool-head"})
      settings.erase(flag);
  if (name == "resnet")
    for (const char* flag : {"--num-layers", "--num-filters"}) settings.erase(flag);
  return settings;
}

void adopt_settings(const std::string& path, CLI::App& command, const Manifest::Settings& given) {
  if (!std::filesystem::is_directory(path)) return;
  const Checkpoint checkpoint(find_checkpoint(path));
  // Images may come from elsewhere than those of the training.
  const std::array<std::string, 2> may_differ{"--app", "--seed"};
  for (const auto& [flag, trained] : checkpoint.manifest().must_match) {
    CLI::Option* option = command.get_option_no_throw(flag);
    const auto now = given.find(flag);
    const bool differs_freely =
        std::find(may_differ.begin(), may_differ.end(), flag) != may_differ.end();
    if (option == nullptr || (now == given.end() && !differs_freely)) continue;
    const CLI::Option* images = command.get_option_no_throw("--datapath");
    if (flag == "--app" && images != nullptr && images->count() > 0) continue;  // the path tells
    if (option->count() == 0) {
      set(*option, trained);
      continue;
    }
    validate(differs_freely || now->second == trained,
             "{} {} contradicts {}, which was trained with {}; leave the flag out", flag,
             now == given.end() ? "" : now->second, checkpoint.folder(), trained);
  }
}

}  // namespace mpi4dl
