#include "cli/checkpoint_flags.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/checks.hpp"

namespace mpi4dl {

CLI::Option* add_checkpoint_flag(CLI::App& command, std::string& path) {
  return command.add_option(
      "--checkpoint,--weights", path,
      "A checkpoint, a folder of checkpoints (the newest one), or a file of weights: .pt or "
      ".safetensors");
}

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
      "Resume from this checkpoint; auto: from the newest complete one, if there is any");
  add_checkpoint_flag(command, weights)
      ->description(
          "Start from the weights of a checkpoint, of the newest in a folder, of a "
          ".safetensors or of a .pt file");
}

CheckpointOptions CheckpointFlags::options() const {
  CheckpointOptions options{.folder = folder, .resume = resume};
  const auto needs_folder = [&](const std::string& flag, bool given) {
    validate(!given || !folder.empty(), "{} requires --checkpoint-dir", flag);
  };
  needs_folder("--checkpoint-every", !every.empty());
  needs_folder("--keep", keep > 0);
  needs_folder("--resume auto", resume == "auto");
  if (!every.empty()) options.every = parse_every("--checkpoint-every", every);
  if (keep > 0) options.keep = keep;
  return options;
}

}  // namespace mpi4dl
