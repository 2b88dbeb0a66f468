#include "cli/loader_flags.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/checks.hpp"

namespace mpi4dl {

void LoaderFlags::add_to(CLI::App& command) {
  command.add_option("--num-workers", workers, "Threads of each rank that read images ahead")
      ->check(at_least(0));
  command
      .add_option("--on-bad-image", on_bad_image,
                  "An image that cannot be read: fail, or skip it for the rest of the run")
      ->check(CLI::IsMember({"fail", "skip"}));
  command.add_option("--augment", augment,
                     "Random changes, a list of: hflip, vflip, turn (by 90 degrees), jitter=0.2 "
                     "(colours), crop=4 (moves by up to 4 pixels)");
}

LoaderOptions LoaderFlags::options() const {
  return {.workers = workers,
          .skip_bad_images = on_bad_image == "skip",
          .augmentation = parse_augmentation(augment),
          .warn = [](const std::string& sentence) {
            std::fprintf(stderr, "mpi4dl: %s\n", sentence.c_str());
          }};
}

}  // namespace mpi4dl
