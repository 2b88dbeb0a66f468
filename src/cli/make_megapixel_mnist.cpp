#include <CLI/CLI.hpp>

#include "base/random.hpp"
#include "cli/add_command.hpp"
#include "cli/checks.hpp"
#include "data/made_images.hpp"
#include "data/megapixel_mnist.hpp"

namespace mpi4dl {
namespace {

struct MakeFlags {
  std::string mnist, out;
  int64_t count = 5000, validation_count = 1000;
  MegapixelMnist::Options task;
};

MegapixelMnist images_of(const MakeFlags& flags, const std::string& part) {
  MegapixelMnist::Options task = flags.task;
  task.seed = combine_keys(task.seed, key_of(part));
  return {read_mnist(flags.mnist, part == "train"), task};
}

int run_make_megapixel_mnist(Session& session, const MakeFlags& flags) {
  session.doing("making images");
  MadeImages set{.out = flags.out,
                 .training = flags.count,
                 .validation = flags.validation_count,
                 .size = flags.task.size};
  for (int label = 0; label < 10; ++label) set.classes.push_back(std::to_string(label));
  const MegapixelMnist training = images_of(flags, "train"), validation = images_of(flags, "val");
  const auto make = [&](const std::string& part, int64_t index) -> MadeImage {
    MegapixelMnist::Image image = (part == "train" ? training : validation).make(index);
    return {std::move(image.pixels), std::to_string(image.label)};
  };
  write_images(set, make, session.world());
  if (session.first())
    fmt::print("{} images for training and {} for validation, each {}x{}, in {}\n", flags.count,
               flags.validation_count, flags.task.size, flags.task.size, flags.out);
  return 0;
}

}  // namespace

void add_make_megapixel_mnist(CLI::App& data, Command& chosen) {
  auto [make, flags] = add_command<MakeFlags>(
      data, chosen, "make-megapixel-mnist",
      "Make large images with few digits, as tiled TIFF with a pyramid: which digit is there "
      "three times? (Katharopoulos and Fleuret 2019)",
      run_make_megapixel_mnist);
  make.add_option("--mnist", flags.mnist, "Folder with the idx files of MNIST, .gz or not")
      ->required();
  make.add_option("--out", flags.out, "Folder to make: train/0 ... train/9, val/0 ... val/9")
      ->required();
  make.add_option("--size", flags.task.size, "Height and width in pixels")->check(at_least(28));
  make.add_option("--count", flags.count, "Images for training, from MNIST's training digits")
      ->check(at_least(1));
  make.add_option("--val-count", flags.validation_count,
                  "Images for validation, from MNIST's test digits")
      ->check(at_least(1));
  make.add_option("--noise", flags.task.noise, "Patterns that are no digits, on each image")
      ->check(at_least(0));
  make.add_option("--seed", flags.task.seed,
                  "Random seed of places, patterns and the choice of digits")
      ->check(at_least(0));
}

}  // namespace mpi4dl
