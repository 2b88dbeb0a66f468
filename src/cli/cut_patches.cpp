#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "cli/add_command.hpp"
#include "cli/checks.hpp"
#include "comm/collectives.hpp"
#include "data/class_folders.hpp"
#include "data/image_file.hpp"
#include "data/image_list.hpp"
#include "data/image_writer.hpp"
#include "data/patch_corners.hpp"
#include "data/view.hpp"

namespace mpi4dl {
namespace {

struct CutFlags {
  std::string path, out;
  int64_t side = 256, count = 16;
  bool cover = false;
  uint64_t seed = 1;
};

/// Returns where patches of an image go: the folder of its part and class, if it has such.
std::filesystem::path folder_of(const ListedImage& image, const ImageList& list,
                                const std::string& out) {
  std::filesystem::path folder = out;
  if (list.has_split) folder /= image.validation ? "val" : "train";
  if (image.label == ListedImage::kUnknown) return folder;
  // Numbers have equally many digits, so that the order of names is theirs.
  return folder /
         (list.classes.empty() ? fmt::format("{:04}", image.label) : list.classes[image.label]);
}

std::filesystem::path stem_of(const ListedImage& image, const ImageList& list,
                              const std::string& out) {
  return folder_of(image, list, out) / std::filesystem::path(image.path).stem();
}

void make_folders(const CutFlags& flags, const ImageList& list) {
  std::set<std::filesystem::path> stems;
  for (const ListedImage& image : list.images)
    validate(stems.insert(stem_of(image, list, flags.out)).second,
             "two images of a class have the name of {}; their patches would be the same files",
             image.path);
  check_new_folder(flags.out);
  for (const ListedImage& image : list.images) make_folder(folder_of(image, list, flags.out));
}

/// Cuts an image and returns how many patches that gave.
int64_t cut(const ListedImage& image, const std::string& stem, const CutFlags& flags) {
  const ImageHeader header = read_header(image.path);
  const Extents size = header.shown(0);
  validate(std::min(size[0], size[1]) >= flags.side,
           "{} has {}x{} pixels, fewer than a patch of {}x{}; use a smaller --patch-size",
           image.path, size[0], size[1], flags.side, flags.side);
  Draw draw(combine_keys(combine_keys(flags.seed, key_of("patches")), image.key));
  const std::vector<Corner> corners = flags.cover
                                          ? covering_corners(size, flags.side)
                                          : random_corners(size, flags.side, flags.count, draw);
  for (size_t i = 0; i < corners.size(); ++i) {
    const auto [row, column] = corners[i];
    at::Tensor rgb;
    with_image(image.path, header, 0, [&](Raster& raster) {
      rgb = show(raster, header.orientation, {.height = size[0], .width = size[1]},
                 {row, row + flags.side}, {column, column + flags.side})
                .contiguous();
    });
    write_png(fmt::format("{}-{:05}.png", stem, i), rgb.data_ptr<uint8_t>(), flags.side,
              flags.side);
  }
  return static_cast<int64_t>(corners.size());
}

/// Deals the images out to ranks, one by one.
int run_cut(Session& session, const CutFlags& flags) {
  session.doing("cutting patches");
  const ImageList list = list_images(flags.path);
  if (session.first()) make_folders(flags, list);
  const Communicator& world = session.world();
  barrier(world);
  int64_t patches = 0;
  for (size_t i = world.rank(); i < list.images.size(); i += world.size())
    patches += cut(list.images[i], stem_of(list.images[i], list, flags.out).string(), flags);
  int64_t all = 0;
  for (const int64_t count : all_gather(patches, world)) all += count;
  if (session.first())
    fmt::print("{} patches of {}x{} from {} images, in {}\n", all, flags.side, flags.side,
               list.images.size(), flags.out);
  return 0;
}

}  // namespace

void add_cut_patches(CLI::App& data, Command& chosen) {
  auto [cut, flags] = add_command<CutFlags>(
      data, chosen, "cut-patches",
      "Cut square patches out of images and write them as PNG, each into the folder of its image's "
      "class: a.tif becomes a-00000.png, a-00001.png, ...",
      run_cut);
  cut.add_option("--datapath", flags.path,
                 "Folder with a folder of images for each class, or CSV file")
      ->required();
  cut.add_option("--out", flags.out, "Folder to make")->required();
  cut.add_option("--patch-size", flags.side, "Height and width of a patch in pixels")
      ->check(at_least(1));
  CLI::Option* count =
      cut.add_option("--per-image", flags.count, "Patches of each image, at random places")
          ->check(at_least(1));
  cut.add_flag("--cover", flags.cover, "Cover each image with patches side by side instead")
      ->excludes(count);
  cut.add_option("--seed", flags.seed, "Random seed of the places")->check(at_least(0));
}

}  // namespace mpi4dl
