#include "data/image_file.hpp"

#include <fmt/ranges.h>
#include <tiffio.h>
#include <vips/vips.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

const std::vector<std::string> kEndings{".png", ".jpg",  ".jpeg", ".tif",    ".tiff",
                                        ".btf", ".svs",  ".ndpi", ".vms",    ".vmu",
                                        ".scn", ".mrxs", ".bif",  ".svslide"};

/// Says that libvips has failed, which knows why.
struct VipsFailure {};

void check(int failed) {
  if (failed != 0) throw VipsFailure{};
}

struct Unref {
  void operator()(void* object) const { g_object_unref(object); }
};
using Image = std::unique_ptr<VipsImage, Unref>;
using Region = std::unique_ptr<VipsRegion, Unref>;

/// Starts libvips. Every image is read once, from one thread: it needs neither its cache, which
/// would also keep files open, nor threads of its own. What it has to say comes with its errors.
void start_libvips() {
  static const int failed = [] {
    const int code = vips_init("mpi4dl");
    vips_cache_set_max(0);
    vips_concurrency_set(1);
    for (const char* domain : {"VIPS", "Openslide", "GLib-GObject"})
      g_log_set_handler(
          domain, static_cast<GLogLevelFlags>(G_LOG_LEVEL_MASK | G_LOG_FLAG_RECURSION),
          [](const char*, GLogLevelFlags, const char*, void*) {}, nullptr);
    return code;
  }();
  ensure(failed == 0, "libvips does not start: {}", vips_error_buffer());
}

/// Returns the first line that libvips has left, without the name of the function in front.
std::string reason() {
  const std::unique_ptr<char, decltype(&g_free)> text(vips_error_buffer_copy(), g_free);
  std::string line(text.get());
  line = line.substr(0, line.find('\n'));
  const size_t colon = line.find(": ");
  if (colon != std::string::npos) line.erase(0, colon + 2);
  return line.empty() ? "libvips gives no reason" : line;
}

void try_alone_if_it_fails(const std::string& path, const std::function<void()>& action) {
  static std::shared_mutex gate;
  std::error_code ignored;
  ensure(std::filesystem::exists(path, ignored), "cannot read {}: there is no such file", path);
  ensure(!std::filesystem::is_directory(path, ignored), "cannot read {}: it is a folder", path);
  start_libvips();
  const auto succeeds = [&action] {
    try {
      action();
      return true;
    } catch (const VipsFailure&) {
      return false;
    }
  };
  if (const std::shared_lock among_others(gate); succeeds()) return;
  const std::unique_lock alone(gate);
  vips_error_clear();
  if (!succeeds()) throw Error(fmt::format("cannot read {}: {}", path, reason()));
}

struct Loader {
  std::string operation;  // libvips' name for it
  bool regions = false;   // reads parts without what is above them
};

Loader find_loader(const std::string& path) {
  const char* operation = vips_foreign_find_load(path.c_str());
  if (operation == nullptr)
    throw Error(fmt::format("cannot read {}: it is not an image that libvips knows", path));
  return {operation, (vips_foreign_flags(operation, path.c_str()) & VIPS_FOREIGN_PARTIAL) != 0};
}

/// Returns when to fail: libjpeg only warns of data that make no sense, others warn of harmless
/// oddities.
VipsFailOn strictness(const Loader& loader) {
  return loader.operation.find("Jpeg") == std::string::npos ? VIPS_FAIL_ON_ERROR
                                                            : VIPS_FAIL_ON_WARNING;
}

/// Opens a file. `option`: which level, in the words of the loader; none where it is empty.
Image load(const std::string& path, const Loader& loader, const std::string& option = "",
           int value = 0) {
  VipsImage* image = nullptr;
  const auto access = loader.regions ? VIPS_ACCESS_RANDOM : VIPS_ACCESS_SEQUENTIAL;
  const char* name = option.empty() ? nullptr : option.c_str();  // the list ends here
  check(vips_call(loader.operation.c_str(), path.c_str(), &image, "access", access, "fail_on",
                  strictness(loader), name, value, nullptr));
  return Image(image);
}

std::string text_of(const Image& image, const std::string& field) {
  const char* text = nullptr;
  if (vips_image_get_typeof(image.get(), field.c_str()) != VIPS_TYPE_REF_STRING) return "";
  check(vips_image_get_string(image.get(), field.c_str(), &text));
  return text;
}

double number_of(const Image& image, const std::string& field) {
  const std::string text = text_of(image, field);
  return text.empty() ? 0 : g_ascii_strtod(text.c_str(), nullptr);
}

int count_of(const Image& image, const char* field) {
  int count = 0;
  if (vips_image_get_typeof(image.get(), field) == G_TYPE_INT)
    check(vips_image_get_int(image.get(), field, &count));
  return count;
}

Extents size_of(const Image& image) {
  return {vips_image_get_height(image.get()), vips_image_get_width(image.get())};
}

/// Returns where a TIFF keeps a coarser level: in a directory below the first, or on a page of its
/// own.
std::string level_option(const Image& first) {
  return count_of(first, "n-subifds") > 0 ? "subifd" : "page";
}

int level_value(const std::string& option, int level) {
  return option == "subifd" ? level - 1 : level;
}

/// Returns whether a page is a level: it shows the same, smaller.
bool is_level(const Extents& whole, const Extents& finer, const Extents& page) {
  if (page[0] >= finer[0] || page[1] >= finer[1]) return false;
  const double rows = static_cast<double>(page[0]) / static_cast<double>(whole[0]);
  const double off = rows * static_cast<double>(whole[1]) - static_cast<double>(page[1]);
  return std::abs(off) <= 2 + 0.01 * static_cast<double>(page[1]);
}

std::vector<Extents> tiff_levels(const std::string& path, const Loader& loader,
                                 const Image& first) {
  std::vector<Extents> levels{size_of(first)};
  const std::string option = level_option(first);
  const int count =
      option == "page" ? vips_image_get_n_pages(first.get()) : 1 + count_of(first, "n-subifds");
  for (int level = 1; level < count; ++level) {
    const Extents size = size_of(load(path, loader, option, level_value(option, level)));
    if (!is_level(levels[0], levels.back(), size)) break;
    levels.push_back(size);
  }
  return levels;
}

Extents tiff_tile(const std::string& path) {
  const std::unique_ptr<TIFF, decltype(&TIFFClose)> tiff(TIFFOpen(path.c_str(), "r"), TIFFClose);
  uint32_t height = 0, width = 0;
  if (tiff && TIFFGetField(tiff.get(), TIFFTAG_TILELENGTH, &height) == 1 &&
      TIFFGetField(tiff.get(), TIFFTAG_TILEWIDTH, &width) == 1)
    return {height, width};
  return {};
}

void describe_slide(const Image& image, ImageHeader& header) {
  header.format = text_of(image, "openslide.vendor") + " slide";
  header.micrometres = {number_of(image, "openslide.mpp-y"), number_of(image, "openslide.mpp-x")};
  const auto level_number = [&](int level, const char* what) {
    return static_cast<int64_t>(
        number_of(image, fmt::format("openslide.level[{}].{}", level, what)));
  };
  const int count = std::max(1, static_cast<int>(number_of(image, "openslide.level-count")));
  header.levels.clear();
  for (int level = 0; level < count; ++level)
    header.levels.push_back({level_number(level, "height"), level_number(level, "width")});
  if (level_number(0, "tile-height") > 0)
    header.tile = {level_number(0, "tile-height"), level_number(0, "tile-width")};
}

void check_values(const Image& image, const std::string& path) {
  const VipsBandFormat format = vips_image_get_format(image.get());
  const int bands = vips_image_get_bands(image.get());
  ensure(format == VIPS_FORMAT_UCHAR || format == VIPS_FORMAT_USHORT,
         "cannot read {}: its values are of type {}, not unsigned integers of 8 or 16 bits", path,
         vips_enum_nick(VIPS_TYPE_BAND_FORMAT, format));
  ensure(bands <= 4 || vips_image_guess_interpretation(image.get()) == VIPS_INTERPRETATION_CMYK,
         "cannot read {}: a pixel has {} values; grey, RGB and CMYK are known", path, bands);
}

ImageHeader describe(const std::string& path) {
  static const std::map<std::string, std::string> formats{
      {"pngload", "PNG"}, {"jpegload", "JPEG"}, {"tiffload", "TIFF"}, {"openslideload", "slide"}};
  const Loader loader = find_loader(path);
  const Image image = load(path, loader);
  const std::string name = text_of(image, VIPS_META_LOADER);
  check_values(image, path);
  ImageHeader header;
  header.loader = loader.operation;
  header.regions = loader.regions;
  const auto known = formats.find(name);
  header.format = known != formats.end() ? known->second : name.substr(0, name.rfind("load"));
  header.levels = {size_of(image)};
  header.bands = vips_image_get_bands(image.get());
  header.bits = 8 * static_cast<int>(vips_format_sizeof(vips_image_get_format(image.get())));
  header.orientation = Orientation::from_exif(vips_image_get_orientation(image.get()));
  if (name == "openslideload") {
    describe_slide(image, header);
  } else if (name == "tiffload") {
    header.levels = tiff_levels(path, loader, image);
    if (loader.regions) header.tile = tiff_tile(path);
    if (!text_of(image, VIPS_META_RESOLUTION_UNIT).empty())  // libvips counts pixels in a mm
      header.micrometres = {1000 / vips_image_get_yres(image.get()),
                            1000 / vips_image_get_xres(image.get())};
  }
  return header;
}

Image load_level(const std::string& path, const Loader& loader, int level) {
  if (level == 0) return load(path, loader);
  if (loader.operation.find("Openslide") != std::string::npos)
    return load(path, loader, "level", level);
  const std::string option = level_option(load(path, loader));
  return load(path, loader, option, level_value(option, level));
}

/// Replaces an image by what `change` makes of it.
template <typename Change>
void transform(Image& image, const Change& change) {
  VipsImage* changed = nullptr;
  check(change(image.get(), &changed));
  image.reset(changed);
}

/// Converts pixel by pixel, so that it does not matter which part of an image is read.
Image as_rgb(Image image, const std::string& path) {
  transform(image, [](VipsImage* in, VipsImage** out) {
    return vips_copy(in, out, "interpretation", vips_image_guess_interpretation(in), nullptr);
  });
  transform(image, [](VipsImage* in, VipsImage** out) {
    return vips_colourspace(in, out, VIPS_INTERPRETATION_sRGB, nullptr);
  });
  if (vips_image_hasalpha(image.get()) != 0)
    transform(image, [](VipsImage* in, VipsImage** out) {
      const std::unique_ptr<VipsArrayDouble, void (*)(VipsArrayDouble*)> white(
          vips_array_double_newv(1, 255.0),
          [](VipsArrayDouble* array) { vips_area_unref(VIPS_AREA(array)); });
      return vips_flatten(in, out, "background", white.get(), nullptr);
    });
  transform(image, [](VipsImage* in, VipsImage** out) {
    return vips_cast(in, out, VIPS_FORMAT_UCHAR, nullptr);
  });
  ensure(vips_image_get_bands(image.get()) == 3, "cannot read {}: it does not become RGB", path);
  return image;
}

class VipsRaster : public Raster {
 public:
  explicit VipsRaster(Image image) : image_(std::move(image)) {}
  int64_t height() const override { return vips_image_get_height(image_.get()); }
  int64_t width() const override { return vips_image_get_width(image_.get()); }

  void scan(const Interval& rows, const Interval& cols, const RowSink& take) override {
    constexpr int64_t kStrip = 64;  // rows at a time
    const Region region(vips_region_new(image_.get()));
    for (int64_t top = rows.begin; top < rows.end; top += kStrip) {
      const VipsRect area{static_cast<int>(cols.begin), static_cast<int>(top),
                          static_cast<int>(cols.length()),
                          static_cast<int>(std::min(kStrip, rows.end - top))};
      check(vips_region_prepare(region.get(), &area));
      for (int y = area.top; y < area.top + area.height; ++y)
        take(y, VIPS_REGION_ADDR(region.get(), area.left, y));
    }
  }

 private:
  Image image_;
};

}  // namespace

ImageHeader read_header(const std::string& path) {
  ImageHeader header;
  try_alone_if_it_fails(path, [&] { header = describe(path); });
  return header;
}

void with_image(const std::string& path, const ImageHeader& header, int level,
                const std::function<void(Raster&)>& use) {
  try_alone_if_it_fails(path, [&] {
    VipsRaster raster(as_rgb(load_level(path, {header.loader, header.regions}, level), path));
    ensure(raster.height() == header.levels.at(level)[0] &&
               raster.width() == header.levels.at(level)[1],
           "cannot read {}: it has changed since it was first looked at", path);
    use(raster);
  });
}

namespace {

std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending;
}

}  // namespace

bool is_image_file(const std::string& path) {
  if (has_image_name(path)) return true;
  if (ending_of(path) == ".csv") return false;  // an image for libvips
  start_libvips();
  const bool known = vips_foreign_find_load(path.c_str()) != nullptr;
  vips_error_clear();
  return known;
}

bool has_image_name(const std::string& path) {
  return std::find(kEndings.begin(), kEndings.end(), ending_of(path)) != kEndings.end();
}

std::string image_endings() {
  return fmt::format("{}", fmt::join(kEndings, ", "));
}

}  // namespace mpi4dl
