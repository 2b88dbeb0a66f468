#include "cli/trained_settings.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>

#include "base/error.hpp"
#include "data/image_size.hpp"
#include "train/checkpoint.hpp"
#include "train/checkpoint_folder.hpp"

namespace mpi4dl {
namespace {

constexpr const char* kNone = "nothing";  // of a list

std::string yes_or_no(bool value) {
  return value ? "true" : "false";
}

/// Returns 512 for 512x512.
std::string shortest(const std::string& image_size) {
  const ImageSize size = parse_image_size("--image-size", image_size);
  return size.height == size.width ? std::to_string(size.height)
                                   : fmt::format("{}x{}", size.height, size.width);
}

void set(CLI::Option& option, const std::string& value) {
  const bool is_off = value == (option.get_expected_max() == 0 ? "false" : "0") || value == kNone;
  if (is_off) return;  // as it is without the flag
  option.add_result(value);
  option.run_callback();
}

}  // namespace

Manifest::Settings model_settings(const ModelFlags& model, const DataFlags& data) {
  const ModelOptions& options = model.options;
  return {{"--model", options.name},
          {"--image-size", shortest(model.image_size)},
          {"--num-classes", std::to_string(options.classes)},
          {"--resnet-version", std::to_string(options.resnet_version)},
          {"--depth", std::to_string(options.depth)},
          {"--global-pool-head", yes_or_no(options.global_pool_head)},
          {"--num-layers", std::to_string(options.num_layers)},
          {"--num-filters", std::to_string(options.num_filters)},
          {"--fit", data.view.fit},
          {"--level", std::to_string(data.view.level)},
          {"--mpp", fmt::format("{}", data.view.micrometres)},
          {"--normalise", to_string(parse_normalisation(data.normalise))}};
}

Manifest::Settings decisive_settings(const TrainedWith& with) {
  Manifest::Settings settings = model_settings(with.flags, with.data);
  settings["--model"] = with.model.name;
  settings["--image-size"] = image_size_text(with.model.graph);
  settings["--num-classes"] = std::to_string(with.model.classes());
  settings["--app"] = with.data.application();
  const FineTuningFlags& tuning = with.training.tuning;
  settings["--freeze"] = tuning.freeze.empty() ? kNone : CLI::detail::join(tuning.freeze, ",");
  settings["--freeze-batch-norm"] = yes_or_no(tuning.freeze_batch_norm);
  settings["--optimizer"] = with.training.optimizer;
  settings["--dtype"] = with.training.dtype;
  settings["--batch-norm"] = with.training.batch_norm;
  settings["--seed"] = std::to_string(with.training.trainer.seed);
  settings["an effective batch of"] = std::to_string(with.effective_batch);
  settings["this number of images:"] = std::to_string(with.images);
  if (with.model.own || with.model.name == "amoebanet")
    for (const char* flag : {"--resnet-version", "--depth", "--global-pool-head"})
      settings.erase(flag);
  if (with.model.own || with.model.name == "resnet")
    for (const char* flag : {"--num-layers", "--num-filters"}) settings.erase(flag);
  return settings;
}

void adopt_settings(const std::string& path, CLI::App& command, const Manifest::Settings& given,
                    ModelFlags& model) {
  if (path.empty()) return;
  validate(std::filesystem::exists(path), "there are no weights '{}'", path);
  if (!std::filesystem::is_directory(path)) return;
  const Checkpoint checkpoint(find_checkpoint(path));
  model.checkpoint = checkpoint_with_graph(path);
  // Images may come from elsewhere than those of the training, and a plan may be for another one.
  const std::array<std::string, 4> may_differ{"--app", "--seed", "--freeze", "--freeze-batch-norm"};
  for (const auto& [flag, trained] : checkpoint.manifest().must_match) {
    CLI::Option* option = command.get_option_no_throw(flag);
    const auto now = given.find(flag);
    const bool differs_freely =
        std::find(may_differ.begin(), may_differ.end(), flag) != may_differ.end();
    if (option == nullptr || (now == given.end() && !differs_freely)) continue;
    const CLI::Option* images = command.get_option_no_throw("--datapath");
    if (flag == "--app" && images != nullptr && images->count() > 0) continue;  // the path tells
    if (option->count() == 0) {
      const bool in_graph = flag == "--model" || flag == "--image-size" || flag == "--num-classes";
      if (!in_graph || model.checkpoint.empty()) set(*option, trained);
      continue;
    }
    validate(differs_freely || now->second == trained,
             "{} {} contradicts {}, which was trained with {}; leave the flag out", flag,
             now == given.end() ? "" : now->second, checkpoint.folder(), trained);
  }
}

}  // namespace mpi4dl
