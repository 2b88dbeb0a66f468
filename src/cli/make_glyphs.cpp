#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.hpp"
#include "base/random.hpp"
#include "cli/add_command.hpp"
#include "cli/checks.hpp"
#include "data/glyphs.hpp"
#include "data/made_images.hpp"

namespace mpi4dl {
namespace {

struct GlyphFlags {
  std::string out;
  int64_t count = 1000, validation_count = 200;
  GlyphImages::Options task;
};

GlyphImages images_of(const GlyphFlags& flags, const std::string& part) {
  GlyphImages::Options task = flags.task;
  task.seed = combine_keys(task.seed, key_of(part));
  return GlyphImages(task);
}

int run_make_glyphs(Session& session, const GlyphFlags& flags) {
  session.doing("making images");
  GlyphImages(flags.task).make(0);  // before anything is written
  validate(std::min(flags.count, flags.validation_count) >= flags.task.classes,
           "--count {} and --val-count {}: each must be at least the {} of --num-classes, so that "
           "no class is empty",
           flags.count, flags.validation_count, flags.task.classes);
  MadeImages set{.out = flags.out,
                 .training = flags.count,
                 .validation = flags.validation_count,
                 .size = flags.task.size};
  for (int label = 0; label < flags.task.classes; ++label)
    set.classes.push_back(GlyphImages::class_name(label));
  const GlyphImages training = images_of(flags, "train"), validation = images_of(flags, "val");
  const auto make = [&](const std::string& part, int64_t index) -> MadeImage {
    GlyphImages::Image image = (part == "train" ? training : validation).make(index);
    return {std::move(image.pixels), GlyphImages::class_name(image.label)};
  };
  write_images(set, make, session.world());
  if (session.first())
    fmt::print("{} images for training and {} for validation, each {}x{}, in {}\n", flags.count,
               flags.validation_count, flags.task.size, flags.task.size, flags.out);
  return 0;
}

}  // namespace

void add_make_glyphs(CLI::App& data, Command& chosen) {
  auto [make, flags] = add_command<GlyphFlags>(
      data, chosen, "make-glyphs",
      "Make large images with few glyphs of 12x12 pixels among distractors, as tiled TIFF with a "
      "pyramid: which glyph occurs most often?",
      run_make_glyphs);
  make.add_option("--out", flags.out, "Folder to make: a folder for each glyph in train and val")
      ->required();
  make.add_option("--size", flags.task.size, "Height and width in pixels")
      ->check(at_least(GlyphImages::kSide));
  make.add_option("--num-classes", flags.task.classes, "Glyphs, each of which is a class")
      ->check(CLI::Range(2, GlyphImages::kMostClasses));
  make.add_option("--most", flags.task.most, "How often the glyph of the class occurs")
      ->check(at_least(1));
  make.add_option("--others", flags.task.others, "How often each other glyph occurs")
      ->check(at_least(0));
  make.add_option("--distractors", flags.task.distractors, "Shapes that are no glyphs")
      ->check(at_least(0));
  make.add_option("--count", flags.count, "Images for training")->check(at_least(1));
  make.add_option("--val-count", flags.validation_count, "Images for validation")
      ->check(at_least(1));
  make.add_option(
          "--seed", flags.task.seed,
          "Random seed of places, orientations and distractors; the same seed gives the same "
          "images")
      ->check(at_least(0));
}

}  // namespace mpi4dl
