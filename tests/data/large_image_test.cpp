// Ranks that read their tiles of an image far larger than they could hold.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <vips/vips.h>

#include <fstream>
#include <memory>

#include "base/error.hpp"
#include "base/random.hpp"
#include "comm/collectives.hpp"
#include "data/image_files.hpp"
#include "geometry/grid.hpp"
#include "support/test_images.hpp"
#include "support/world.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kSide = 30000, kBlock = 256;
const Interval kRows{11000, 15000}, kCols{17003, 21003};  // no tile begins with it

// Noise in and around the region, which no format can store in fewer bytes, on a plain background.
constexpr int64_t kMargin = 300;
const Interval kNoisyRows{kRows.begin - kMargin, kRows.end + kMargin};
const Interval kNoisyCols{kCols.begin - kMargin, kCols.end + kMargin};

uint8_t noise(int64_t row, int64_t col, int64_t channel) {
  return static_cast<uint8_t>(mix(static_cast<uint64_t>(row * kSide + col)) >> (8 * channel));
}

struct Unref {
  void operator()(VipsImage* image) const { g_object_unref(image); }
};
using Image = std::unique_ptr<VipsImage, Unref>;

Image from_bytes(const std::vector<uint8_t>& bytes, int64_t height, int64_t width) {
  return Image(vips_image_new_from_memory_copy(bytes.data(), bytes.size(), static_cast<int>(width),
                                               static_cast<int>(height), 3, VIPS_FORMAT_UCHAR));
}

template <typename Change>
void transform(Image& image, const Change& change) {
  VipsImage* changed = nullptr;
  ensure(change(image.get(), &changed) == 0, "libvips: {}", vips_error_buffer());
  image.reset(changed);
}

Image background() {
  constexpr int64_t kBlocks = kSide / kBlock + 1;
  std::vector<uint8_t> colours;
  for (int64_t y = 0; y < kBlocks; ++y)
    for (int64_t x = 0; x < kBlocks; ++x)
      colours.insert(colours.end(), {static_cast<uint8_t>(y), static_cast<uint8_t>(x), 0});
  Image image = from_bytes(colours, kBlocks, kBlocks);
  transform(image, [](VipsImage* in, VipsImage** out) {
    return vips_zoom(in, out, kBlock, kBlock, nullptr);
  });
  transform(image, [](VipsImage* in, VipsImage** out) {
    return vips_crop(in, out, 0, 0, kSide, kSide, nullptr);
  });
  return image;
}

void make_large_image(const std::string& path) {
  ensure(vips_init("test") == 0, "libvips does not start");
  std::vector<uint8_t> bytes;
  bytes.reserve(3 * kNoisyRows.length() * kNoisyCols.length());
  for (int64_t y = kNoisyRows.begin; y < kNoisyRows.end; ++y)
    for (int64_t x = kNoisyCols.begin; x < kNoisyCols.end; ++x)
      for (int64_t c = 0; c < 3; ++c) bytes.push_back(noise(y, x, c));
  const Image region = from_bytes(bytes, kNoisyRows.length(), kNoisyCols.length());
  Image image = background();
  transform(image, [&](VipsImage* in, VipsImage** out) {
    return vips_insert(in, region.get(), out, static_cast<int>(kNoisyCols.begin),
                       static_cast<int>(kNoisyRows.begin), nullptr);
  });
  transform(image, [](VipsImage* in, VipsImage** out) {
    return vips_copy(in, out, "interpretation", VIPS_INTERPRETATION_sRGB, nullptr);
  });
  ensure(vips_tiffsave(image.get(), path.c_str(), "tile", TRUE, "tile_width", 256, "tile_height",
                       256, "bigtiff", TRUE, "compression", VIPS_FOREIGN_TIFF_COMPRESSION_ZSTD,
                       "level", 1, nullptr) == 0,
         "libvips: {}", vips_error_buffer());
}

/// Returns the number behind a word in a file of /proc, such as "VmHWM:  123 kB".
int64_t number_in(const std::string& file, const std::string& word) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(word)) return std::stoll(line.substr(word.size()));
  throw Error(file + " does not say " + word);
}

TEST(LargeImage, RanksReadTheirTilesAndLittleElse) {
  const Communicator& world = testing::world();
  std::unique_ptr<testing::ScratchFolder> folder;
  at::Tensor name = at::zeros({256}, at::kByte);
  if (world.rank() == 0) {
    folder = std::make_unique<testing::ScratchFolder>();
    const std::string path = *folder / "large.tif";
    make_large_image(path);
    std::copy(path.begin(), path.end(), name.data_ptr<uint8_t>());
  }
  broadcast(name, world, 0);
  const std::string path(reinterpret_cast<const char*>(name.data_ptr<uint8_t>()));

  const ImageFiles data({{.path = path, .label = 0}}, {});
  ASSERT_EQ(data.extent(0), (Extents{kSide, kSide}));
  const std::vector<int64_t> region{1, 3, kRows.length(), kCols.length()};
  Box box = Grid{.rows = 2, .cols = 2}.owned(region, world.rank());
  for (auto [axis, begin] : {std::pair{2, kRows.begin}, std::pair{3, kCols.begin}})
    box[axis] = {box[axis].begin + begin, box[axis].end + begin};

  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const int64_t resident = number_in("/proc/self/status", "VmRSS:");
  const int64_t read_before = number_in("/proc/self/io", "rchar:");
  const at::Tensor tile = data.read(0, box);
  const int64_t read = number_in("/proc/self/io", "rchar:") - read_before;
  const int64_t peak = number_in("/proc/self/status", "VmHWM:") - resident;

  const int64_t stored = 3 * box[2].length() * box[3].length();
  EXPECT_LT(peak, 300 * 1024);
  EXPECT_GE(read, stored);
  EXPECT_LT(read, 2 * stored);
  if (world.rank() == 0)
    fmt::print(
        "rank 0: peak {:.0f} MiB above its start, {:.2f} MB read for {:.2f} MB of its tile\n",
        static_cast<double>(peak) / 1024, static_cast<double>(read) / 1e6,
        static_cast<double>(stored) / 1e6);

  ASSERT_EQ(tile.sizes(), (std::vector<int64_t>{3, 2000, 2000}));
  int64_t wrong = 0;
  const auto pixels = tile.accessor<float, 3>();
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < 2000; ++y)
      for (int64_t x = 0; x < 2000; ++x) {
        const auto value = static_cast<float>(noise(box[2].begin + y, box[3].begin + x, c));
        wrong += pixels[c][y][x] != (value / 255.0F - 0.5F) / 0.5F;
      }
  EXPECT_EQ(wrong, 0);
  all_gather(0, world);  // the file is gone after this
}

}  // namespace
}  // namespace mpi4dl
