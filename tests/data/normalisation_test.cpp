#include "data/normalisation.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "data/synthetic.hpp"

namespace mpi4dl {
namespace {

TEST(Normalisation, IsReadAsItIsWritten) {
  for (const char* text : {"none", "imagenet", "0.5,0.5", "0.1:0.2,2", "0,1:2:3"})
    EXPECT_EQ(to_string(parse_normalisation(text)), text);
  EXPECT_EQ(to_string(parse_normalisation("0.485:0.456:0.406,0.229:0.224:0.225")), "imagenet");
  EXPECT_EQ(to_string(parse_normalisation("0,1")), "none");
  EXPECT_EQ(parse_normalisation("0.5,0.5"), Normalisation{});
}

TEST(Normalisation, RefusesWhatIsNone) {
  for (const char* text : {"", "imagnet", "0.5", "0.5,", ",0.5", "0.5:,1", "1,2,3", "0.5,0",
                           "0.5,-1", "0:0,1:1:1", "nan,1", "0.5,inf", "0.5 ,1"})
    EXPECT_THROW(parse_normalisation(text), UsageError) << text;
  EXPECT_THROW(parse_normalisation("imagenet").check_channels(1), UsageError);
  EXPECT_THROW(parse_normalisation("0,1:1:1").check_channels(4), UsageError);
  EXPECT_NO_THROW(parse_normalisation("0.2,0.3").check_channels(4));
  EXPECT_NO_THROW(parse_normalisation("imagenet").check_channels(3));
}

/// Data sets give 2x - 1 for x from 0 to 1; torchvision computes (x - mean) / deviation.
TEST(Normalisation, IsThatOfTorchvision) {
  const at::Tensor x = at::rand({3, 5, 7}, at::kDouble), shown = 2 * x - 1;
  const auto per_channel = [](double a, double b, double c) {
    return at::tensor({a, b, c}, at::kDouble).view({3, 1, 1});
  };
  const at::Tensor expected =
      (x - per_channel(0.485, 0.456, 0.406)) / per_channel(0.229, 0.224, 0.225);
  const Normalisation imagenet = parse_normalisation("imagenet");
  EXPECT_LT((imagenet.apply(shown, {0, 3}) - expected).abs().max().item<double>(), 1e-14);
  EXPECT_TRUE(imagenet.apply(shown.slice(0, 1, 3), {1, 3})
                  .equal(imagenet.apply(shown, {0, 3}).slice(0, 1, 3)));
  EXPECT_LT((parse_normalisation("none").apply(shown, {0, 3}) - x).abs().max().item<double>(),
            1e-15);
  EXPECT_TRUE(Normalisation{}.apply(shown, {0, 3}).is_same(shown)) << "nothing is to be done";
}

/// Whatever box is asked for, a pixel has the same value, to the bit.
TEST(NormalisedImages, DoNotDependOnTheBox) {
  const auto images = std::make_shared<SyntheticImages>(
      SyntheticOptions{.size = 2, .classes = 3, .image = {3, {13, 17}}, .seed = 3});
  const auto shown = normalised_images(images, parse_normalisation("imagenet"));
  EXPECT_EQ(shown->size(), 2);
  EXPECT_EQ(shown->label(1), images->label(1));
  EXPECT_EQ(shown->name(1), images->name(1));
  const Box whole{{0, 1}, {0, 3}, {0, 13}, {0, 17}}, part{{0, 1}, {1, 3}, {2, 7}, {3, 16}};
  const at::Tensor all = shown->read(1, whole);
  EXPECT_TRUE(shown->read(1, part).equal(all.slice(0, 1, 3).slice(1, 2, 7).slice(2, 3, 16)));
  EXPECT_FALSE(all.equal(images->read(1, whole)));
  EXPECT_EQ(normalised_images(images, {}), images);
  EXPECT_EQ(normalised_images(nullptr, parse_normalisation("none")), nullptr);
}

}  // namespace
}  // namespace mpi4dl
