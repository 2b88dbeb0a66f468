#include "cli/view_flags.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "base/error.hpp"
#include "cli/checks.hpp"

namespace mpi4dl {
namespace {

const std::map<std::string, Fit> kFits{{"exact", Fit::exact},
                                       {"crop", Fit::crop},
                                       {"pad", Fit::pad},
                                       {"crop-pad", Fit::crop_pad},
                                       {"resize", Fit::resize}};

}  // namespace

void ViewFlags::add_to(CLI::App& command) {
  command
      .add_option(
          "--fit", fit,
          "What to do with files of another size: exact (refuse), crop (centre), pad (white), "
          "crop-pad or resize")
      ->check(CLI::IsMember(kFits));
  command.add_option("--level", level, "Level of an image pyramid; 0 is the finest")
      ->check(at_least(0));
  default_in_words(
      command
          .add_option(
              "--mpp", micrometres,
              "Micrometres per pixel, instead of a level: reads the next finer level, resized")
          ->check(more_than(0)),
      "as in the file");
}

ViewOptions ViewFlags::options(const Extents& canvas) const {
  validate(micrometres == 0 || level == 0, "--level {} and --mpp {} exclude each other", level,
           micrometres);
  validate(micrometres == 0 || fit != "resize",
           "--mpp {} and --fit resize exclude each other: both say how large a pixel is",
           micrometres);
  return {canvas, kFits.at(fit), level, micrometres};
}

}  // namespace mpi4dl
