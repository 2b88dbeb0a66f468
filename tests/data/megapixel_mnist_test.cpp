#include "data/megapixel_mnist.hpp"

#include <gtest/gtest.h>
#include <vips/vips.h>
#include <zlib.h>

#include <fstream>
#include <map>

#include "base/error.hpp"
#include "data/image_writer.hpp"
#include "support/scratch_folder.hpp"

namespace mpi4dl::testing {
namespace {

/// Each digit is a square of ink that tells its label.
uint8_t ink(int label) {
  return static_cast<uint8_t>(100 + label);
}

std::vector<Digit> squares() {
  std::vector<Digit> digits(20);
  for (int i = 0; i < 20; ++i) {
    digits[i].label = i % 10;
    digits[i].pixels.fill(ink(i % 10));
  }
  return digits;
}

std::string big_endian(std::initializer_list<uint32_t> numbers) {
  std::string bytes;
  for (const uint32_t number : numbers)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 255);
  return bytes;
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void write_compressed(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

std::string idx_images(const std::vector<Digit>& digits) {
  std::string bytes = big_endian({0x803, static_cast<uint32_t>(digits.size()), 28, 28});
  for (const Digit& digit : digits) bytes.append(digit.pixels.begin(), digit.pixels.end());
  return bytes;
}

std::string idx_labels(const std::vector<Digit>& digits) {
  std::string bytes = big_endian({0x801, static_cast<uint32_t>(digits.size())});
  for (const Digit& digit : digits) bytes += static_cast<char>(digit.label);
  return bytes;
}

std::string failure_of_reading(const std::string& folder) {
  try {
    read_mnist(folder, true);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Mnist, ReadsPlainAndCompressedFiles) {
  const ScratchFolder folder;
  const std::vector<Digit> digits = squares();
  write(folder / "train-images-idx3-ubyte", idx_images(digits));
  write_compressed(folder / "train-labels-idx1-ubyte.gz", idx_labels(digits));
  const std::vector<Digit> found = read_mnist(folder.path(), true);
  ASSERT_EQ(found.size(), digits.size());
  for (size_t i = 0; i < digits.size(); ++i) {
    EXPECT_EQ(found[i].label, digits[i].label);
    EXPECT_EQ(found[i].pixels, digits[i].pixels);
  }
}

TEST(Mnist, SaysWhatIsWrongWithItsFiles) {
  const ScratchFolder folder;
  const std::vector<Digit> digits = squares();
  const std::string images = folder / "train-images-idx3-ubyte";
  const std::string labels = folder / "train-labels-idx1-ubyte";
  EXPECT_EQ(
      failure_of_reading(folder.path()),
      "there is no train-images-idx3-ubyte and no train-images-idx3-ubyte.gz in " + folder.path());
  write(images, idx_images(digits));
  write(labels, idx_images(digits));
  EXPECT_EQ(failure_of_reading(folder.path()), labels + " is not an idx file of MNIST");
  write(labels, idx_labels({digits.begin(), digits.end() - 1}));
  EXPECT_EQ(failure_of_reading(folder.path()), labels + " has 19 labels for 20 images");
  write(images, idx_images(digits).substr(0, 1000));
  EXPECT_EQ(failure_of_reading(folder.path()), images + " ends too early; it is damaged");
  std::vector<Digit> wrong = digits;
  wrong[7].label = 77;
  write(images, idx_images(wrong));
  write(labels, idx_labels(wrong));
  EXPECT_EQ(failure_of_reading(folder.path()), labels + " has a label 77; digits are 0 to 9");
}

TEST(MegapixelMnist, HasThreeOfItsClassTwoOthersAndStrokes) {
  const MegapixelMnist images(squares(), {.size = 400, .noise = 40, .seed = 3});
  for (int64_t index = 0; index < 50; ++index) {
    const MegapixelMnist::Image image = images.make(index);
    EXPECT_EQ(image.label, index % 10);
    std::map<uint8_t, int64_t> pixels;  // by value
    int64_t strokes = 0;
    for (const uint8_t value : image.pixels) {
      if (value >= 204)
        ++strokes;
      else if (value != 0)
        ++pixels[value];
    }
    // Whole squares, so none lies over another.
    int64_t others = 0;
    for (const auto& [value, count] : pixels) {
      EXPECT_EQ(count % (int64_t{28} * 28), 0);
      if (value != ink(image.label)) others += count;
    }
    EXPECT_EQ(pixels[ink(image.label)], 3 * 28 * 28);
    EXPECT_EQ(others, 2 * 28 * 28);
    EXPECT_GT(strokes, 40 * 28);
    EXPECT_LT(strokes, 40 * 2 * 56);
  }
}

TEST(MegapixelMnist, DependsOnSeedAndIndexAlone) {
  const std::vector<Digit> digits = squares();
  const MegapixelMnist images(digits, {.size = 300, .noise = 9, .seed = 3});
  EXPECT_EQ(images.make(4).pixels, images.make(4).pixels);
  EXPECT_NE(images.make(4).pixels, images.make(14).pixels);
  const MegapixelMnist others(digits, {.size = 300, .noise = 9, .seed = 4});
  EXPECT_NE(images.make(4).pixels, others.make(4).pixels);
}

TEST(MegapixelMnist, NeedsRoom) {
  const MegapixelMnist images(squares(), {.size = 128, .noise = 50, .seed = 3});
  try {
    images.make(0);
    FAIL() << "55 squares do not fit";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("a canvas of 128x128 has no room for 5 digits and 50"),
              std::string::npos);
  }
}

TEST(WritePyramid, StoresEveryLevelInTiles) {
  const ScratchFolder folder;
  const std::string path = folder / "image.tif";
  std::vector<uint8_t> pixels(size_t{512} * 512);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 31 / 7);
  write_pyramid(path, pixels, 512);
  for (const int level : {0, 1, 2, 3}) {
    VipsImage* image = nullptr;
    ASSERT_EQ(vips_tiffload(path.c_str(), &image, "page", level, nullptr), 0);
    EXPECT_EQ(vips_image_get_width(image), 512 >> level);
    if (level == 0) {
      size_t size = 0;
      void* stored = vips_image_write_to_memory(image, &size);
      ASSERT_EQ(size, pixels.size());
      EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), static_cast<uint8_t*>(stored)));
      g_free(stored);
    }
    g_object_unref(image);
  }
}

}  // namespace
}  // namespace mpi4dl::testing
