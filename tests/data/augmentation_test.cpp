#include "data/augmentation.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "data/synthetic.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {
namespace {

constexpr uint64_t kSeed = 5;

Shape image(int64_t height, int64_t width, int64_t channels = 3) {
  return {.channels = channels, .space = {height, width}};
}

RandomImages images(const Shape& shape) {
  return RandomImages({.size = 8, .classes = 4, .image = shape, .seed = 3});
}

Box whole(const Shape& shape) {
  return {{0, 1}, {0, shape.channels}, {0, shape.space[0]}, {0, shape.space[1]}};
}

at::Tensor part(const at::Tensor& pixels, const Box& box) {
  return pixels.slice(0, box[1].begin, box[1].end)
      .slice(1, box[2].begin, box[2].end)
      .slice(2, box[3].begin, box[3].end);
}

Interval draw_interval(Dice& dice, int64_t length) {
  const int64_t begin = dice.pick(0, length - 1);
  return {begin, dice.pick(begin + 1, length)};
}

/// Returns the changed image that epoch after epoch comes out of one sample.
std::vector<at::Tensor> changed(const std::string& list, const Shape& shape, int64_t epochs) {
  const Augmentation augmentation(parse_augmentation(list), shape, kSeed);
  const RandomImages data = images(shape);
  std::vector<at::Tensor> all;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch)
    all.push_back(augmentation.read(data, epoch, 2, whole(shape)).contiguous());
  return all;
}

/// Counts how many of the results are each of these; each result must be one of `wanted`.
std::vector<int> count(const std::vector<at::Tensor>& results,
                       const std::vector<at::Tensor>& wanted) {
  std::vector<int> counts(wanted.size());
  for (const at::Tensor& result : results) {
    const auto found =
        std::ranges::find_if(wanted, [&](const at::Tensor& one) { return at::equal(result, one); });
    EXPECT_NE(found, wanted.end()) << "a result that is none of those that are possible";
    if (found != wanted.end()) ++counts[found - wanted.begin()];
  }
  return counts;
}

TEST(Augmentation, BoxesAreThoseOfTheWholeChangedImage) {
  Dice dice(kSeed);
  for (const std::string list : {"hflip", "vflip", "turn", "jitter", "crop", "jitter=0.7", "crop=7",
                                 "hflip,vflip,turn", "hflip,vflip,turn,jitter,crop", "turn,crop=3"})
    for (int trial = 0; trial < 30; ++trial) {
      const bool square = list.find("turn") != std::string::npos;
      const int64_t height = dice.pick(8, 21), width = square ? height : dice.pick(8, 21);
      const Shape shape = image(height, width, dice.one_of<int64_t>({1, 3, 4}));
      const Augmentation augmentation(parse_augmentation(list), shape, kSeed + trial);
      const RandomImages data = images(shape);
      const int64_t epoch = dice.pick(1, 9), sample = dice.pick(0, 7);
      const at::Tensor expected = augmentation.read(data, epoch, sample, whole(shape));
      for (int cut = 0; cut < 10; ++cut) {
        const Box box{{0, 1},
                      draw_interval(dice, shape.channels),
                      draw_interval(dice, height),
                      draw_interval(dice, width)};
        EXPECT_TRUE(at::equal(augmentation.read(data, epoch, sample, box), part(expected, box)))
            << list << " of " << to_string(shape) << " in " << to_string(box);
      }
    }
}

TEST(Augmentation, FlipsHalfOfTheTime) {
  const Shape shape = image(6, 9);
  const at::Tensor source = images(shape).read(2, whole(shape));
  const auto across = count(changed("hflip", shape, 200), {source, source.flip(2)});
  const auto down = count(changed("vflip", shape, 200), {source, source.flip(1)});
  EXPECT_NEAR(across[0], 100, 30);
  EXPECT_NEAR(down[0], 100, 30);
}

TEST(Augmentation, TurnsInAllFourWays) {
  const Shape shape = image(7, 7);
  const at::Tensor source = images(shape).read(2, whole(shape));
  std::vector<at::Tensor> turned;
  for (int quarters = 0; quarters < 4; ++quarters) turned.push_back(source.rot90(quarters, {1, 2}));
  for (const int times : count(changed("turn", shape, 200), turned)) EXPECT_NEAR(times, 50, 25);
}

TEST(Augmentation, CropsFromTheImageAndItsMirror) {
  const Shape shape = image(8, 9);
  const at::Tensor source = images(shape).read(2, whole(shape));
  const at::Tensor padded = at::reflection_pad2d(source.unsqueeze(0), {2, 2, 2, 2})[0];
  std::vector<at::Tensor> crops;
  for (int64_t y = 0; y <= 4; ++y)
    for (int64_t x = 0; x <= 4; ++x) crops.push_back(padded.slice(1, y, y + 8).slice(2, x, x + 9));
  for (const int times : count(changed("crop=2", shape, 500), crops)) EXPECT_NEAR(times, 20, 17);
}

TEST(Augmentation, JitterChangesColoursByPixel) {
  const Shape shape = image(4, 5);
  const at::Tensor source = images(shape).read(2, whole(shape));
  for (const at::Tensor& result : changed("jitter=0.3", shape, 20)) {
    // Brightness and contrast are two numbers for all pixels, which grey values show.
    const auto grey = [](const at::Tensor& image) {
      return image[0] * 0.299 + image[1] * 0.587 + image[2] * 0.114;
    };
    const at::Tensor before = grey(source).flatten(), after = grey(result).flatten();
    const double contrast = ((after[1] - after[0]) / (before[1] - before[0])).item<double>();
    const double brightness = (after[0] / contrast - before[0]).item<double>();
    EXPECT_GE(contrast, 0.7);
    EXPECT_LE(contrast, 1.3);
    EXPECT_LE(std::abs(brightness), 0.3);
    EXPECT_TRUE(at::allclose(after, (before + brightness) * contrast));
    // Saturation is one number for all distances from grey.
    const at::Tensor colour = (result - grey(result)) / (source - grey(source)) / contrast;
    EXPECT_TRUE(at::allclose(colour, colour[0][0][0].expand_as(colour)));
    EXPECT_LE(std::abs(colour[0][0][0].item<double>() - 1), 0.3 + 1e-9);
  }
}

TEST(Augmentation, ChangesWithSeedEpochAndSample) {
  const Shape shape = image(16, 16);
  const RandomImages data = images(shape);
  const auto options = parse_augmentation("hflip,vflip,turn,jitter,crop");
  const auto read = [&](uint64_t seed, int64_t epoch) {
    return Augmentation(options, shape, seed).read(data, epoch, 1, whole(shape));
  };
  EXPECT_TRUE(at::equal(read(1, 1), read(1, 1)));
  EXPECT_FALSE(at::equal(read(1, 1), read(1, 2)));
  EXPECT_FALSE(at::equal(read(1, 1), read(2, 1)));
}

/// Every sentence names what is wrong.
TEST(Augmentation, SaysWhatItCannotDo) {
  const auto sentence = [](const std::string& list, const Shape& shape) -> std::string {
    try {
      const Augmentation augmentation(parse_augmentation(list), shape, 1);
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(sentence("none", image(8, 9)), "");
  EXPECT_NE(sentence("turn", image(8, 9)).find("needs square images, not 8x9"), std::string::npos);
  EXPECT_NE(sentence("crop=8", image(8, 9)).find("moves images of 8x9 away; use less than 8"),
            std::string::npos);
  EXPECT_NE(sentence("spin", image(8, 8)).find("'spin' is an unknown augmentation"),
            std::string::npos);
  EXPECT_NE(sentence("hflip=2", image(8, 8)).find("'hflip=2' is an unknown augmentation"),
            std::string::npos);
  EXPECT_NE(sentence("jitter=2", image(8, 8)).find("between 0 and 1, not '2'"), std::string::npos);
  EXPECT_NE(sentence("crop=x", image(8, 8)).find("not 'x'"), std::string::npos);
  EXPECT_NE(sentence("", image(8, 8)).find("changes nothing"), std::string::npos);
}

}  // namespace
}  // namespace mpi4dl::testing
