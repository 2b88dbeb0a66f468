// Headers of all files, each looked at by one rank.
#include "data/survey.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "base/on_threads.hpp"
#include "comm/collectives.hpp"
#include "data/image_files.hpp"
#include "support/scratch.hpp"
#include "support/test_images.hpp"

namespace mpi4dl::testing {
namespace {

/// Has synthetic images of which every 100th cannot be opened, and every 250th has another size.
class Counted : public Dataset {
 public:
  explicit Counted(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  Extents extent(int64_t /*sample*/) const override { return {1, 1}; }
  int64_t label(int64_t /*sample*/) const override { return 0; }
  std::string name(int64_t sample) const override { return std::to_string(sample) + ".png"; }
  at::Tensor read(int64_t /*sample*/, const Box& /*box*/) const override { return {}; }
  Problem look_at(int64_t sample) const override {
    ++looks;
    if (sample % 100 == 99) return {Problem::Kind::unreadable, name(sample) + " is cut\noff"};
    if (sample % 250 == 249) return {Problem::Kind::unsuitable, name(sample) + " is small"};
    return {};
  }

  mutable std::atomic<int64_t> looks = 0;

 private:
  int64_t size_;
};

TEST(Survey, SharesTheFilesAndAgrees) {
  const Counted data(1203);
  const Survey found = survey(data, /*with_names=*/true, world());
  EXPECT_EQ(data.looks, part(1203, world().rank(), world().size()).length());
  EXPECT_EQ(found.images, 1203);
  EXPECT_EQ(found.unreadable.images, 12);
  EXPECT_EQ(found.unsuitable.images, 2);  // 249 and 749; 499 and 999 cannot be opened
  EXPECT_EQ(found.bad.size(), 14U);
  EXPECT_EQ(found.bad.at(1199), "1199.png is cut off");
  EXPECT_EQ(found.bad.at(749), "749.png is small");
  const Survey counted = survey(data, /*with_names=*/false, world());
  EXPECT_TRUE(counted.bad.empty());
  EXPECT_EQ(describe({found, Survey()}), describe({counted, Survey()}));
}

TEST(Survey, IsOneSentence) {
  Survey a{.images = 1200, .unreadable = {2, "a.png is cut off"}};
  const Survey b{.images = 3, .unreadable = {1, "b.png is empty"}, .unsuitable = {1, "c is small"}};
  EXPECT_EQ(describe({a, b}),
            "1,203 images: 1,199 readable, 3 cannot be opened (first: a.png is cut off), 1 cannot "
            "be shown as asked for (c is small)");
  EXPECT_EQ(describe({Survey{.images = 1}}), "1 image: 1 readable");
  EXPECT_EQ(describe({Survey{.images = 1234567}}), "1,234,567 images: 1,234,567 readable");
}

TEST(Survey, OpensImageFiles) {
  const Scratch scratch;
  if (world().rank() == 0) {
    save_picture(make_picture(20, 30), scratch / "good.png");
    save_picture(make_picture(21, 30), scratch / "tall.png");
    save_picture(make_picture(20, 30), scratch / "cut.jpg");
    truncate_file(scratch / "cut.jpg", 0.02);
  }
  barrier(world());
  std::vector<ListedImage> images;
  for (const char* name : {"good.png", "tall.png", "cut.jpg", "none.png", "good.png"})
    images.push_back({.path = scratch / name, .label = 0});
  const Survey found =
      survey(ImageFiles(images, {.canvas = {20, 30}}), /*with_names=*/true, world());
  EXPECT_EQ(found.unreadable.images, 2);
  EXPECT_EQ(found.unsuitable.images, 1);
  EXPECT_EQ(found.unsuitable.first, images[1].path +
                                        " has 21x30 pixels, not the image size of 20x30; use crop, "
                                        "pad, crop-pad or resize");
  EXPECT_EQ(found.bad.at(3), "cannot read " + images[3].path + ": there is no such file");
}

TEST(OnThreads, DoesEachOnceAndThrowsWhatAnyThrows) {
  std::vector<std::atomic<int>> done(1000);
  on_threads(done.size(), [&](size_t i) { ++done[i]; });
  for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
  EXPECT_THROW(on_threads(5,
                          [](size_t i) {
                            if (i == 3) throw std::runtime_error("3");
                          }),
               std::runtime_error);
  on_threads(0, [](size_t) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace mpi4dl::testing
