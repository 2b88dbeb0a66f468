#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/random.hpp"
#include "cli/checks.hpp"
#include "cli/class_folders.hpp"
#include "cli/commands.hpp"
#include "comm/session.hpp"
#include "data/image_writer.hpp"
#include "data/megapixel_mnist.hpp"

namespace mpi4dl {
namespace {

struct MakeFlags {
  std::string mnist, out;
  int64_t count = 5000, validation_count = 1000;
  MegapixelMnist::Options task;
};

/// Ranks take turns.
void make_part(const MakeFlags& flags, const std::string& part, int64_t count,
               const Communicator& world) {
  MegapixelMnist::Options task = flags.task;
  task.seed = combine_keys(task.seed, key_of(part));
  const MegapixelMnist images(read_mnist(flags.mnist, part == "train"), task);
  for (int64_t index = world.rank(); index < count; index += world.size()) {
    const MegapixelMnist::Image image = images.make(index);
    const auto folder = class_folder(flags.out, part, std::to_string(image.label));
    write_pyramid((folder / fmt::format("{:05}.tif", index)).string(), image.pixels, task.size);
  }
}

int run_make(Session& session, const MakeFlags& flags) {
  session.doing("making images");
  read_mnist(flags.mnist, /*training=*/false);  // before anything is written
  std::vector<std::string> classes;
  for (int label = 0; label < 10; ++label) classes.push_back(std::to_string(label));
  if (session.first()) make_class_folders(flags.out, classes);
  session.world().barrier();
  make_part(flags, "train", flags.count, session.world());
  make_part(flags, "val", flags.validation_count, session.world());
  session.world().barrier();
  if (session.first())
    std::printf("%lld images for training and %lld for validation, each %lldx%lld, in %s\n",
                static_cast<long long>(flags.count), static_cast<long long>(flags.validation_count),
                static_cast<long long>(flags.task.size), static_cast<long long>(flags.task.size),
                flags.out.c_str());
  return 0;
}

}  // namespace

void add_make_megapixel_mnist(CLI::App& data, Command& chosen) {
  auto flags = std::make_shared<MakeFlags>();
  CLI::App* make = data.add_subcommand(
      "make-megapixel-mnist",
      "Make large images with few digits, as tiled TIFF with a pyramid: which digit is there "
      "three times? (Katharopoulos and Fleuret 2019)");
  make->option_defaults()->always_capture_default();
  make->add_option("--mnist", flags->mnist, "Folder with the idx files of MNIST, .gz or not")
      ->required();
  make->add_option("--out", flags->out, "Folder to make: train/0 ... train/9, val/0 ... val/9")
      ->required();
  make->add_option("--size", flags->task.size, "Height and width in pixels")->check(at_least(28));
  make->add_option("--count", flags->count, "Images for training, from MNIST's training digits")
      ->check(at_least(1));
  make->add_option("--val-count", flags->validation_count,
                   "Images for validation, from MNIST's test digits")
      ->check(at_least(1));
  make->add_option("--noise", flags->task.noise, "Patterns that are no digits, on each image")
      ->check(at_least(0));
  make->add_option("--seed", flags->task.seed, "Of places, patterns and the choice of digits");
  make->callback([flags, &chosen] {
    chosen.run = [flags](Session& session) { return run_make(session, *flags); };
  });
}

}  // namespace mpi4dl
