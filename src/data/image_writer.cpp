#include "data/image_writer.hpp"

#include <vips/vips.h>

#include <functional>
#include <memory>

#include "base/append_file.hpp"
#include "base/error.hpp"
#include "base/unfinished_file.hpp"

namespace mpi4dl {
namespace {

constexpr int kTile = 128;

struct Pixels {
  const uint8_t* values = nullptr;
  int64_t height = 0, width = 0;
  int bands = 1;
};

using Encode = std::function<int(VipsImage*, void** bytes, size_t* length)>;

/// Writes to memory first: libvips does not say why a file cannot be written.
void write_image(const std::string& path, const Pixels& pixels, const Encode& encode) {
  if (VIPS_INIT("mpi4dl") != 0) throw Error("libvips does not start");
  VipsImage* image = vips_image_new_from_memory(
      pixels.values, pixels.height * pixels.width * pixels.bands, static_cast<int>(pixels.width),
      static_cast<int>(pixels.height), pixels.bands, VIPS_FORMAT_UCHAR);
  ensure(image != nullptr, "libvips cannot hold an image of {}x{}", pixels.height, pixels.width);
  void* bytes = nullptr;
  size_t length = 0;
  const int failed = encode(image, &bytes, &length);
  g_object_unref(image);
  ensure(failed == 0, "cannot encode {}: {}", path, vips_error_buffer());
  const std::unique_ptr<void, decltype(&g_free)> owner(bytes, g_free);
  UnfinishedFile file(path);
  AppendFile(file.partial(), AppendFile::Start::empty)
      .append({static_cast<const char*>(bytes), length});
  file.publish();
}

}  // namespace

void write_pyramid(const std::string& path, const std::vector<uint8_t>& pixels, int64_t size) {
  write_image(path, {pixels.data(), size, size},
              [](VipsImage* image, void** bytes, size_t* length) {
                return vips_tiffsave_buffer(image, bytes, length, "tile", TRUE, "tile_width", kTile,
                                            "tile_height", kTile, "pyramid", TRUE, "depth",
                                            VIPS_FOREIGN_DZ_DEPTH_ONEPIXEL, "compression",
                                            VIPS_FOREIGN_TIFF_COMPRESSION_DEFLATE, nullptr);
              });
}

void write_png(const std::string& path, const uint8_t* rgb, int64_t height, int64_t width) {
  write_image(path, {rgb, height, width, 3}, [](VipsImage* image, void** bytes, size_t* length) {
    return vips_pngsave_buffer(image, bytes, length, nullptr);
  });
}

}  // namespace mpi4dl
