// Ranks that read their tiles of an image far larger than they could hold.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <vips/vips.h>

#include <fstream>
#include <memory>

#include "base/error.hpp"
#include "base/random.hpp"
#include "data/image_files.hpp"
#include "geometry/grid.hpp"
#include "support/test_images.hpp"
#include "support/world.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kSide = 30000, kBlock = 256, kPeriod = 1031;
const Interval kRows{11000, 15000}, kCols{17003, 21003};  // a region that no tile begins with

/// The image as a formula: specks that repeat, and rows and columns of blocks.
uint8_t speck(int64_t row, int64_t col) {
  const int64_t place = row % kPeriod * kPeriod + col % kPeriod;
  return mix(static_cast<uint64_t>(place)) % 16 == 0 ? 255 : 0;
}
int pixel(int64_t row, int64_t col, int64_t channel) {
  if (channel == 0) return speck(row, col);
  return static_cast<int>((channel == 1 ? row : col) / kBlock);
}

struct Unref {
  void operator()(VipsImage* image) const { g_object_unref(image); }
};
using Image = std::unique_ptr<VipsImage, Unref>;

/// The top left of many copies, or of one with large pixels.
template <typename Grow>
Image grown(const std::vector<uint8_t>& bytes, int64_t side, const Grow& grow) {
  const Image small(vips_image_new_from_memory_copy(bytes.data(), bytes.size(), side, side, 1,
                                                    VIPS_FORMAT_UCHAR));
  VipsImage *large = nullptr, *cut = nullptr;
  ensure(grow(small.get(), &large) == 0, "libvips: {}", vips_error_buffer());
  const Image owner(large);
  ensure(vips_crop(large, &cut, 0, 0, kSide, kSide, nullptr) == 0, "libvips: {}",
         vips_error_buffer());
  return Image(cut);
}

void make_large_image(const std::string& path) {
  ensure(vips_init("test") == 0, "libvips does not start");
  const int copies = kSide / kPeriod + 1, blocks = kSide / kBlock + 1;
  std::vector<uint8_t> specks, rows, cols;
  for (int64_t y = 0; y < kPeriod; ++y)
    for (int64_t x = 0; x < kPeriod; ++x) specks.push_back(speck(y, x));
  for (int y = 0; y < blocks; ++y)
    for (int x = 0; x < blocks; ++x) {
      rows.push_back(y);
      cols.push_back(x);
    }
  const auto repeat = [&](VipsImage* in, VipsImage** out) {
    return vips_replicate(in, out, copies, copies, nullptr);
  };
  const auto zoom = [&](VipsImage* in, VipsImage** out) {
    return vips_zoom(in, out, kBlock, kBlock, nullptr);
  };
  const Image red = grown(specks, kPeriod, repeat), green = grown(rows, blocks, zoom),
              blue = grown(cols, blocks, zoom);
  VipsImage* bands[] = {red.get(), green.get(), blue.get()};
  VipsImage* joined = nullptr;
  ensure(vips_bandjoin(bands, &joined, 3, nullptr) == 0, "libvips: {}", vips_error_buffer());
  const Image image(joined);
  image->Type = VIPS_INTERPRETATION_sRGB;
  ensure(vips_tiffsave(image.get(), path.c_str(), "tile", TRUE, "tile_width", 256, "tile_height",
                       256, "bigtiff", TRUE, "compression", VIPS_FOREIGN_TIFF_COMPRESSION_ZSTD,
                       "level", 1, nullptr) == 0,
         "libvips: {}", vips_error_buffer());
}

/// A number behind a word in a file of /proc, such as "VmHWM:  123 kB".
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
  world.broadcast(name, 0);
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

  const double share = static_cast<double>(box[2].length() * box[3].length()) / (kSide * kSide);
  const double stored = share * static_cast<double>(std::filesystem::file_size(path));
  EXPECT_LT(peak, 300 * 1024);
  EXPECT_GT(static_cast<double>(read), 0.5 * stored);
  EXPECT_LT(static_cast<double>(read), 2 * stored);
  if (world.rank() == 0)
    std::printf(
        "rank 0: peak %.0f MiB above its start, %.2f MB read, %.2f MB stored for its tile\n",
        static_cast<double>(peak) / 1024, static_cast<double>(read) / 1e6, stored / 1e6);

  ASSERT_EQ(tile.sizes(), (std::vector<int64_t>{3, 2000, 2000}));
  int64_t wrong = 0;
  const auto pixels = tile.accessor<float, 3>();
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < 2000; ++y)
      for (int64_t x = 0; x < 2000; ++x) {
        const auto value = static_cast<float>(pixel(box[2].begin + y, box[3].begin + x, c));
        wrong += pixels[c][y][x] != (value / 255.0F - 0.5F) / 0.5F;
      }
  EXPECT_EQ(wrong, 0);
  all_gather(world, 0);  // the file is gone after this
}

}  // namespace
}  // namespace mpi4dl
