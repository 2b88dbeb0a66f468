#include "cli/loader_flags.hpp"

#include <CLI/CLI.hpp>

#include "cli/checks.hpp"

namespace mpi4dl {

void LoaderFlags::add_to(CLI::App& command) {
  command.add_option("--num-workers", workers, "Threads of each rank that load images ahead")
      ->check(at_least(0));
  on_bad_image.add_to(command);
  command.add_option("--augment", augment,
                     "Random augmentations, a list of: hflip, vflip, turn (by 90 degrees), "
                     "jitter=0.2 (colours), crop=4 (shifts by up to 4 pixels)");
}

LoaderOptions LoaderFlags::options() const {
  return {.workers = workers,
          .skip_bad_images = on_bad_image.skip(),
          .augmentation = parse_augmentation(augment),
          .warn = warn};
}

}  // namespace mpi4dl
