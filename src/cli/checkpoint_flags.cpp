#include "cli/checkpoint_flags.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/checks.hpp"

namespace mpi4dl {

void CheckpointFlags::add_to(CLI::App& command) {
  command.option_defaults()->group("Checkpoints");
  command.add_option("--checkpoint-dir", folder, "Keep checkpoints in this folder");
  command
      .add_option("--checkpoint-every", every,
                  "How often: a number of epochs such as 2, or of steps such as 500steps")
      ->default_str("1epochs");
  command.add_option("--keep", keep, "How many checkpoints to keep")
      ->check(at_least(1))
      ->default_str("3");
  command.add_option(
      "--resume", resume,
      "Go on from this checkpoint; auto: from the newest whole one, if there is any");
  command.add_option("--weights", weights,
                     "Start from these weights: a checkpoint, a .safetensors file, or a .pt file");
}

CheckpointOptions CheckpointFlags::options() const {
  CheckpointOptions options{.folder = folder, .resume = resume};
  const auto needs_folder = [&](const std::string& flag, bool given) {
    validate(!given || !folder.empty(), "{} has a meaning only with --checkpoint-dir", flag);
  };
  needs_folder("--checkpoint-every", !every.empty());
  needs_folder("--keep", keep > 0);
  needs_folder("--resume auto", resume == "auto");
  if (!every.empty()) options.every = parse_every("--checkpoint-every", every);
  if (keep > 0) options.keep = keep;
  return options;
}

Manifest::Settings decisive_settings(const ModelFlags& model, const TrainingFlags& training,
                                     int64_t effective_batch, int64_t images) {
  const ModelOptions& options = model.options;
  Manifest::Settings settings{{"--model", options.name},
                              {"--image-size", model.image_size},
                              {"--num-classes", std::to_string(options.classes)},
                              {"--optimizer", training.optimizer},
                              {"--dtype", training.dtype},
                              {"--batch-norm", training.batch_norm},
                              {"--seed", std::to_string(training.trainer.seed)},
                              {"an effective batch of", std::to_string(effective_batch)},
                              {"this number of images:", std::to_string(images)}};
  if (options.name != "amoebanet") {
    settings["--resnet-version"] = std::to_string(options.resnet_version);
    settings["--depth"] = std::to_string(options.depth);
    settings["--global-pool-head"] = options.global_pool_head ? "true" : "false";
  }
  if (options.name != "resnet") {
    settings["--num-layers"] = std::to_string(options.num_layers);
    settings["--num-filters"] = std::to_string(options.num_filters);
  }
  return settings;
}

}  // namespace mpi4dl
