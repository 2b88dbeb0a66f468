#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "base/on_threads.hpp"
#include "base/units.hpp"
#include "cli/add_command.hpp"
#include "cli/checks.hpp"
#include "cli/flag_names.hpp"
#include "cli/view_flags.hpp"
#include "data/cifar.hpp"
#include "data/image_size.hpp"
#include "geometry/grid.hpp"

namespace mpi4dl {
namespace {

struct InspectFlags {
  std::string path;
  ViewFlags view;
  std::string image_size;  // empty: each image as large as it is
  int parts = 0;           // 0: no tiles
  std::string slice_method = "square";
  bool decode = false;

  ViewOptions options() const {
    if (image_size.empty()) {
      validate(view.fit == "exact", "--fit {} needs --image-size", view.fit);
      return view.options({});
    }
    const ImageSize size = parse_image_size("--image-size", image_size);
    return view.options({size.height, size.width});
  }
};

std::string size_text(const Extents& size) {
  return fmt::format("{}x{}", size[0], size[1]);
}

void print_header(const std::string& path, const ImageHeader& header) {
  std::string text = fmt::format("{}: {}, {} pixels of {} x {} bits", path, header.format,
                                 size_text(header.shown(0)), header.bands, header.bits);
  if (header.micrometres[0] > 0) text += fmt::format(", {:.4g} um a pixel", header.micrometres[0]);
  text += header.regions ? ", any part can be read" : ", read from the top";
  if (!header.tile.empty()) text += ", tiles of " + size_text(header.tile);
  fmt::print("{}\n", text);
  for (int level = 0; level < static_cast<int>(header.levels.size()); ++level) {
    const double scale =
        static_cast<double>(header.levels[0][1]) / static_cast<double>(header.levels[level][1]);
    text = fmt::format("  level {}: {}, 1 to {:.4g}", level, size_text(header.shown(level)), scale);
    if (header.micrometres[0] > 0)
      text += fmt::format(", {:.4g} um a pixel", header.micrometres[0] * scale);
    fmt::print("{}\n", text);
  }
}

/// Prints which rows and columns each tile of an image of this size has.
void print_tiles(const Extents& size, const InspectFlags& flags) {
  if (flags.parts == 0) return;
  const Grid grid = make_grid(flags.slice_method, flags.parts);
  validate(grid.rows <= size[0] && grid.cols <= size[1],
           "an image of {} pixels cannot be cut into {} tiles", size_text(size), to_string(grid));
  const std::vector<int64_t> shape{1, 3, size[0], size[1]};
  fmt::print("an image of {} pixels in {} tiles:\n", size_text(size), to_string(grid));
  for (int tile = 0; tile < grid.size(); ++tile) {
    const Box box = grid.owned(shape, tile);
    fmt::print("  tile {}: rows {} to {}, columns {} to {}, {:.1f} MiB as float32\n", tile,
               box[2].begin, box[2].end - 1, box[3].begin, box[3].end - 1,
               mebibytes(4 * box.elements()));
  }
}

/// Holds what one look at a file tells.
struct Finding {
  std::string format;
  Extents stored, shown;
  std::string problem;  // why it cannot be used
};

Finding look_at(const std::string& path, const InspectFlags& flags, const ViewOptions& options) {
  try {
    const ImageHeader header = read_header(path);
    const View view = view_of(header, options, path);
    if (flags.decode)
      with_image(path, header, view.level, [](Raster& image) {
        image.scan({0, image.height()}, {0, image.width()}, [](int64_t, const uint8_t*) {});
      });
    return {header.format, header.shown(0), view.canvas, ""};
  } catch (const Error& error) {
    return {"", {}, {}, with_flags(error.what())};
  }
}

std::vector<Finding> look_at_all(const std::vector<ListedImage>& images, const InspectFlags& flags,
                                 const ViewOptions& options) {
  std::vector<Finding> findings(images.size());
  on_threads(images.size(),
             [&](size_t i) { findings[i] = look_at(images[i].path, flags, options); });
  return findings;
}

void print_counts(const ImageList& list) {
  std::map<int64_t, std::pair<int64_t, int64_t>> counts;  // training, validation
  for (const ListedImage& image : list.images)
    ++(image.validation ? counts[image.label].second : counts[image.label].first);
  for (const auto& [label, count] : counts) {
    std::string text = label == ListedImage::kUnknown ? "  no class"
                       : list.classes.empty()
                           ? fmt::format("  class {}", label)
                           : fmt::format("  class {} '{}'", label, list.classes[label]);
    text += list.has_split
                ? fmt::format(": {} for training, {} for validation", count.first, count.second)
                : fmt::format(": {}", count.first);
    fmt::print("{}\n", text);
  }
  if (!list.unused_columns.empty())
    fmt::print("  columns that are not used: {}\n", fmt::join(list.unused_columns, ", "));
  if (!list.loose.empty())
    fmt::print("  images beside the folders of classes are not used: {}\n", list.loose);
}

/// Prints the smallest and the largest size, by pixels.
void print_sizes(const std::vector<Finding>& findings) {
  std::map<std::string, int64_t> formats;
  std::map<int64_t, Extents> sizes;
  for (const Finding& finding : findings) {
    if (!finding.problem.empty()) continue;
    ++formats[finding.format];
    sizes[finding.stored[0] * finding.stored[1]] = finding.stored;
  }
  for (const auto& [format, count] : formats) fmt::print("  {}: {}\n", format, count);
  if (!sizes.empty())
    fmt::print("  sizes from {} to {} pixels\n", size_text(sizes.begin()->second),
               size_text(sizes.rbegin()->second));
}

int inspect_list(const InspectFlags& flags) {
  const ViewOptions options = flags.options();
  const ImageList list = list_images(flags.path);
  fmt::print("{}: {} images\n", flags.path, list.images.size());
  print_counts(list);
  const std::vector<Finding> findings = look_at_all(list.images, flags, options);
  print_sizes(findings);
  int64_t bad = 0;
  for (const Finding& finding : findings)
    if (!finding.problem.empty()) {
      fmt::print("  {}\n", finding.problem);
      ++bad;
    }
  for (const Finding& finding : findings)
    if (finding.problem.empty()) {
      print_tiles(finding.shown, flags);
      break;
    }
  if (bad == 0) return 0;
  fmt::print("{} of {} images cannot be used\n", bad, findings.size());
  return 1;
}

int inspect_image(const InspectFlags& flags) {
  print_header(flags.path, read_header(flags.path));
  const Finding finding = look_at(flags.path, flags, flags.options());
  ensure(finding.problem.empty(), "{}", finding.problem);
  print_tiles(finding.shown, flags);
  return 0;
}

int inspect_cifar(const InspectFlags& flags) {
  const ViewOptions options = flags.options();
  const DataParts parts = open_cifar(flags.path, options.canvas, options.fit);
  std::map<int64_t, std::pair<int64_t, int64_t>> counts;
  for (int64_t i = 0; i < parts.training->size(); ++i) ++counts[parts.training->label(i)].first;
  for (int64_t i = 0; i < parts.validation->size(); ++i)
    ++counts[parts.validation->label(i)].second;
  fmt::print("{}: CIFAR-10, {} images for training and {} for validation\n", flags.path,
             parts.training->size(), parts.validation->size());
  for (const auto& [label, count] : counts)
    fmt::print("  class {}: {} for training, {} for validation\n", label, count.first,
               count.second);
  print_tiles(parts.training->extent(0), flags);
  return 0;
}

int run_inspect(Session& session, const InspectFlags& flags) {
  session.doing("inspecting " + flags.path);
  if (!session.first()) return 0;
  validate(std::filesystem::exists(flags.path), "there is no file or folder {}", flags.path);
  if (is_cifar(flags.path)) return inspect_cifar(flags);
  const bool image = !std::filesystem::is_directory(flags.path) && is_image_file(flags.path);
  return image ? inspect_image(flags) : inspect_list(flags);
}

}  // namespace

void add_data_inspect(CLI::App& data, Command& chosen) {
  auto [inspect, flags] = add_command<InspectFlags>(
      data, chosen, "inspect",
      "Say what an image file, a folder or a CSV file of images holds, and how it is cut into "
      "tiles",
      run_inspect);
  inspect.add_option("path", flags.path, "Image, folder, CSV file, or folder of CIFAR-10")
      ->required();
  default_in_words(inspect.add_option("--image-size", flags.image_size,
                                      "Show images at this size: 512 or 512x768"),
                   "as in the file");
  flags.view.add_to(inspect);
  default_in_words(
      inspect.add_option("--num-spatial-parts", flags.parts, "Tiles to cut an image into")
          ->check(at_least(1)),
      "none");
  inspect.add_option(
      "--slice-method", flags.slice_method,
      "How to cut: square, vertical (columns), horizontal (rows), or rows x columns: 2x3");
  inspect.add_flag("--decode", flags.decode, "Read every pixel too, to find damaged files");
}

}  // namespace mpi4dl
