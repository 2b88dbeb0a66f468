#include "support/test_images.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <vips/vips.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/error.hpp"
#include "base/random.hpp"

namespace mpi4dl::testing {
namespace {

struct Unref {
  void operator()(VipsImage* image) const { g_object_unref(image); }
};
using Image = std::unique_ptr<VipsImage, Unref>;

void check(int failed) {
  ensure(failed == 0, "libvips: {}", vips_error_buffer());
}

template <typename Change>
void transform(Image& image, const Change& change) {
  VipsImage* changed = nullptr;
  check(change(image.get(), &changed));
  image.reset(changed);
}

}  // namespace

Picture make_picture(int height, int width, int bands) {
  Picture picture{height, width, bands, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int band = 0; band < bands; ++band) {
        const double wave = std::sin(0.11 * x * (band + 1) + 0.07 * y) * 80;
        const double noise = uniform(7, picture.bytes.size()) * 60;
        picture.bytes.push_back(static_cast<uint8_t>(98 + wave + noise));
      }
  return picture;
}

void save_picture(const Picture& picture, const std::string& path, const SaveOptions& options) {
  check(vips_init("test"));
  Image image(vips_image_new_from_memory_copy(picture.bytes.data(), picture.bytes.size(),
                                              picture.width, picture.height, picture.bands,
                                              VIPS_FORMAT_UCHAR));
  const VipsInterpretation meaning = options.cmyk        ? VIPS_INTERPRETATION_CMYK
                                     : picture.bands < 3 ? VIPS_INTERPRETATION_B_W
                                                         : VIPS_INTERPRETATION_sRGB;
  const double pixels_in_mm = options.micrometres > 0 ? 1000 / options.micrometres : 1;
  transform(image, [&](VipsImage* in, VipsImage** out) {
    return vips_copy(in, out, "interpretation", meaning, "xres", pixels_in_mm, "yres", pixels_in_mm,
                     nullptr);
  });
  if (options.sixteen_bits) {
    transform(image, [](VipsImage* in, VipsImage** out) {
      return vips_linear1(in, out, 257, 0, nullptr);
    });
    transform(image, [&](VipsImage* in, VipsImage** out) {
      return vips_cast(in, out, VIPS_FORMAT_USHORT, nullptr);
    });
    transform(image, [&](VipsImage* in, VipsImage** out) {
      return vips_copy(in, out, "interpretation",
                       picture.bands < 3 ? VIPS_INTERPRETATION_GREY16 : VIPS_INTERPRETATION_RGB16,
                       nullptr);
    });
  }
  if (options.floats)
    transform(image, [](VipsImage* in, VipsImage** out) {
      return vips_cast(in, out, VIPS_FORMAT_FLOAT, nullptr);
    });
  vips_image_set_int(image.get(), VIPS_META_ORIENTATION, options.orientation);
  if (!options.description.empty())
    vips_image_set_string(image.get(), VIPS_META_IMAGEDESCRIPTION, options.description.c_str());
  const std::string name = options.save.empty() ? path : path + "[" + options.save + "]";
  check(vips_image_write_to_file(image.get(), name.c_str(), nullptr));
}

void truncate_file(const std::string& path, double share) {
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  std::filesystem::resize_file(path, static_cast<uintmax_t>(bytes * share));
}

void damage_file(const std::string& path, int64_t from) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(from);
  for (int i = 0; i < 64; ++i) file.put(static_cast<char>(mix(i)));
}

void replace_in_file(const std::string& path, std::string_view bytes, std::string_view others) {
  ensure(bytes.size() == others.size(), "{} bytes cannot replace {}", others.size(), bytes.size());
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::string content = text.str();
  size_t place = content.find(bytes);
  ensure(place != std::string::npos, "{} does not hold the bytes to replace", path);
  for (; place != std::string::npos; place = content.find(bytes, place + bytes.size()))
    content.replace(place, bytes.size(), others);
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace mpi4dl::testing
