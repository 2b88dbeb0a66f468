#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "base/on_threads.hpp"
#include "base/units.hpp"
#include "cli/checks.hpp"
#include "cli/commands.hpp"
#include "cli/image_size.hpp"
#include "cli/view_flags.hpp"
#include "comm/session.hpp"
#include "data/cifar.hpp"
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
    const ImageSize size = parse_image_size(image_size);
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
  std::printf("%s\n", text.c_str());
  for (int level = 0; level < static_cast<int>(header.levels.size()); ++level) {
    const double scale =
        static_cast<double>(header.levels[0][1]) / static_cast<double>(header.levels[level][1]);
    text = fmt::format("  level {}: {}, 1 to {:.4g}", level, size_text(header.shown(level)), scale);
    if (header.micrometres[0] > 0)
      text += fmt::format(", {:.4g} um a pixel", header.micrometres[0] * scale);
    std::printf("%s\n", text.c_str());
  }
}

/// Which rows and columns each tile of an image of this size has.
void print_tiles(const Extents& size, const InspectFlags& flags) {
  if (flags.parts == 0) return;
  const Grid grid = slice(flags.slice_method, flags.parts);
  validate(grid.rows <= size[0] && grid.cols <= size[1],
           "an image of {} pixels cannot be cut into {} tiles", size_text(size), to_string(grid));
  const std::vector<int64_t> shape{1, 3, size[0], size[1]};
  std::printf("an image of %s pixels in %s tiles:\n", size_text(size).c_str(),
              to_string(grid).c_str());
  for (int tile = 0; tile < grid.size(); ++tile) {
    const Box box = grid.owned(shape, tile);
    std::printf("  tile %d: rows %lld to %lld, columns %lld to %lld, %.1f MiB as float32\n", tile,
                static_cast<long long>(box[2].begin), static_cast<long long>(box[2].end - 1),
                static_cast<long long>(box[3].begin), static_cast<long long>(box[3].end - 1),
                mebibytes(4 * box.elements()));
  }
}

/// What one look at a file tells.
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
    return {"", {}, {}, error.what()};
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
    std::printf("%s\n", text.c_str());
  }
  if (!list.unused_columns.empty())
    std::printf("  columns that are not used: %s\n",
                fmt::format("{}", fmt::join(list.unused_columns, ", ")).c_str());
  if (!list.loose.empty())
    std::printf("  images beside the folders of classes are not used: %s\n", list.loose.c_str());
}

/// Smallest and largest, by pixels.
void print_sizes(const std::vector<Finding>& findings) {
  std::map<std::string, int64_t> formats;
  std::map<int64_t, Extents> sizes;
  for (const Finding& finding : findings) {
    if (!finding.problem.empty()) continue;
    ++formats[finding.format];
    sizes[finding.stored[0] * finding.stored[1]] = finding.stored;
  }
  for (const auto& [format, count] : formats)
    std::printf("  %s: %lld\n", format.c_str(), static_cast<long long>(count));
  if (!sizes.empty())
    std::printf("  sizes from %s to %s pixels\n", size_text(sizes.begin()->second).c_str(),
                size_text(sizes.rbegin()->second).c_str());
}

int inspect_list(const InspectFlags& flags) {
  const ViewOptions options = flags.options();
  const ImageList list = list_images(flags.path);
  std::printf("%s: %zu images\n", flags.path.c_str(), list.images.size());
  print_counts(list);
  const std::vector<Finding> findings = look_at_all(list.images, flags, options);
  print_sizes(findings);
  int64_t bad = 0;
  for (const Finding& finding : findings)
    if (!finding.problem.empty()) {
      std::printf("  %s\n", finding.problem.c_str());
      ++bad;
    }
  for (const Finding& finding : findings)
    if (finding.problem.empty()) {
      print_tiles(finding.shown, flags);
      break;
    }
  if (bad == 0) return 0;
  std::printf("%lld of %zu images cannot be used\n", static_cast<long long>(bad), findings.size());
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
  std::printf("%s: CIFAR-10, %lld images for training and %lld for validation\n",
              flags.path.c_str(), static_cast<long long>(parts.training->size()),
              static_cast<long long>(parts.validation->size()));
  for (const auto& [label, count] : counts)
    std::printf("  class %lld: %lld for training, %lld for validation\n",
                static_cast<long long>(label), static_cast<long long>(count.first),
                static_cast<long long>(count.second));
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
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* inspect = data.add_subcommand(
      "inspect",
      "Say what an image file, a folder or a CSV file of images holds, and how it is cut into "
      "tiles");
  inspect->option_defaults()->always_capture_default();
  inspect->add_option("path", flags->path, "Image, folder, CSV file, or folder of CIFAR-10")
      ->required();
  default_in_words(inspect->add_option("--image-size", flags->image_size,
                                       "Show images at this size: 512 or 512x768"),
                   "as in the file");
  flags->view.add_to(*inspect);
  default_in_words(
      inspect->add_option("--num-spatial-parts", flags->parts, "Tiles to cut an image into")
          ->check(at_least(1)),
      "none");
  inspect->add_option("--slice-method", flags->slice_method,
                      "square, vertical (columns), horizontal (rows), or rows x columns: 2x3");
  inspect->add_flag("--decode", flags->decode, "Read every pixel too, to find damaged files");
  inspect->callback([flags, &chosen] {
    chosen.run = [flags](Session& session) { return run_inspect(session, *flags); };
  });
}

}  // namespace mpi4dl
