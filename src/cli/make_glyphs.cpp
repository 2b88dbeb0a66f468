#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "base/random.hpp"
#include "cli/checks.hpp"
#include "cli/class_folders.hpp"
#include "cli/commands.hpp"
#include "comm/session.hpp"
#include "data/glyphs.hpp"
#include "data/image_writer.hpp"

namespace mpi4dl {
namespace {

struct GlyphFlags {
  std::string out;
  int64_t count = 1000, validation_count = 200;
  GlyphImages::Options task;
};

/// Ranks take turns.
void make_part(const GlyphFlags& flags, const std::string& part, int64_t count,
               const Communicator& world) {
  GlyphImages::Options task = flags.task;
  task.seed = combine_keys(task.seed, key_of(part));
  const GlyphImages images(task);
  for (int64_t index = world.rank(); index < count; index += world.size()) {
    const GlyphImages::Image image = images.make(index);
    const auto folder = class_folder(flags.out, part, GlyphImages::class_name(image.label));
    write_pyramid((folder / fmt::format("{:05}.tif", index)).string(), image.pixels, task.size);
  }
}

int run_make(Session& session, const GlyphFlags& flags) {
  session.doing("making images");
  GlyphImages(flags.task).make(0);  // before anything is written
  validate(std::min(flags.count, flags.validation_count) >= flags.task.classes,
           "--count {} and --val-count {}: each must be at least the {} of --num-classes, so that "
           "no class is empty",
           flags.count, flags.validation_count, flags.task.classes);
  std::vector<std::string> classes;
  for (int label = 0; label < flags.task.classes; ++label)
    classes.push_back(GlyphImages::class_name(label));
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

void add_make_glyphs(CLI::App& data, Command& chosen) {
  auto flags = std::make_shared<GlyphFlags>();
  CLI::App* make = data.add_subcommand(
      "make-glyphs",
      "Make large images with few glyphs of 12x12 pixels among distractors, as tiled TIFF with a "
      "pyramid: which glyph occurs most often?");
  make->option_defaults()->always_capture_default();
  make->add_option("--out", flags->out, "Folder to make: a folder for each glyph in train and val")
      ->required();
  make->add_option("--size", flags->task.size, "Height and width in pixels")
      ->check(at_least(GlyphImages::kSide));
  make->add_option("--num-classes", flags->task.classes, "Glyphs, each of which is a class")
      ->check(CLI::Range(2, GlyphImages::kMostClasses));
  make->add_option("--most", flags->task.most, "How often the glyph of the class occurs")
      ->check(at_least(1));
  make->add_option("--others", flags->task.others, "How often each other glyph occurs")
      ->check(at_least(0));
  make->add_option("--distractors", flags->task.distractors, "Shapes that are no glyphs")
      ->check(at_least(0));
  make->add_option("--count", flags->count, "Images for training")->check(at_least(1));
  make->add_option("--val-count", flags->validation_count, "Images for validation")
      ->check(at_least(1));
  make->add_option("--seed", flags->task.seed,
                   "Seed of places, orientations and distractors; the same seed gives the same "
                   "images");
  make->callback([flags, &chosen] {
    chosen.run = [flags](Session& session) { return run_make(session, *flags); };
  });
}

}  // namespace mpi4dl
