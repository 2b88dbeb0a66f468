// Every rank reads its strip of the images; the loader of one rank alone reads them whole.
#include "data/loader.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "comm/collectives.hpp"
#include "data/sampler.hpp"
#include "data/synthetic.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

constexpr int64_t kImages = 23, kBatch = 4, kHeight = 9, kWidth = 6, kSteps = kImages / kBatch;
const Shape kShape{.channels = 3, .space = {kHeight, kWidth}};

/// Has random images, some of which have a row that cannot be read.
class FragileImages : public RandomImages {
 public:
  explicit FragileImages(std::set<int64_t> bad = {}, int64_t bad_row = kHeight / 2)
      : RandomImages({.size = kImages, .classes = 4, .image = kShape, .seed = 3}),
        bad_(std::move(bad)),
        bad_row_(bad_row) {}

  at::Tensor read(int64_t sample, const Box& box) const override {
    ++reads;
    if (bad_.contains(sample) && box[2].contains({bad_row_, bad_row_ + 1}))
      throw Error(name(sample) + " is broken");
    return RandomImages::read(sample, box);
  }

  mutable std::atomic<int> reads = 0;

 private:
  std::set<int64_t> bad_;
  int64_t bad_row_;
};

/// Reads a strip of every image of the batch.
std::vector<Reading> strips(const Communicator& comm) {
  std::vector<Reading> all;
  for (int64_t place = 0; place < kBatch; ++place)
    all.push_back({place, {{0, 1}, {0, 3}, part(kHeight, comm.rank(), comm.size()), {0, kWidth}}});
  return all;
}

LoaderOptions options(int workers = 0) {
  return {.effective_batch = kBatch,
          .epochs = 3,
          .image = kShape,
          .seed = 7,
          .workers = workers,
          .augmentation = parse_augmentation("hflip,vflip,jitter,crop=2")};
}

std::vector<at::Tensor> pixels_of_step(Loader& loader, const Communicator& comm) {
  std::vector<at::Tensor> all;
  for (const Reading& reading : strips(comm)) all.push_back(loader.read(reading));
  return all;
}

void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << "image " << i;
}

/// Returns the sentence of the error that loading and reading a step ends with.
std::string failure(Loader& loader, const Position& step) {
  try {
    loader.load(step);
    pixels_of_step(loader, world());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Loader, FollowsTheShuffleOfEachEpoch) {
  const FragileImages data;
  Loader loader(data, strips(world()), options(), world());
  EXPECT_EQ(loader.steps_of_epoch(), kSteps);
  for (int64_t epoch = 1; epoch <= 2; ++epoch) {
    const std::vector<int64_t> order = shuffled(kImages, 7, epoch);
    for (int64_t step = 1; step <= kSteps; ++step) {
      loader.load({epoch, step});
      for (int64_t place = 0; place < kBatch; ++place) {
        const int64_t sample = order[(step - 1) * kBatch + place];
        EXPECT_EQ(loader.samples()[place], sample);
        EXPECT_EQ(loader.label(place), data.label(sample));
      }
    }
  }
}

TEST(Loader, WorkersReadTheSamePixels) {
  const FragileImages data;
  Loader plain(data, strips(world()), options(), world());
  for (const int workers : {1, 3}) {
    Loader ahead(data, strips(world()), options(workers), world());
    for (int64_t epoch = 1; epoch <= 3; ++epoch)
      for (int64_t step = 1; step <= kSteps; ++step) {
        plain.load({epoch, step});
        ahead.load({epoch, step});
        expect_same(pixels_of_step(ahead, world()), pixels_of_step(plain, world()));
      }
  }
  EXPECT_EQ(at::get_num_threads(), session().threads()) << "workers change their own threads only";
}

TEST(Loader, StartsAnywhereAndReadsTwice) {
  const FragileImages data;
  Loader from_start(data, strips(world()), options(2), world());
  Loader resumed(data, strips(world()), options(2), world());
  for (int64_t step = 1; step <= 3; ++step) from_start.load({2, step});
  resumed.load({2, 3});
  const auto expected = pixels_of_step(from_start, world());
  expect_same(pixels_of_step(resumed, world()), expected);
  expect_same(pixels_of_step(resumed, world()), expected);
}

/// Reads so far, when no more come.
int settled(const FragileImages& data, int expected) {
  using std::chrono::milliseconds;
  for (int i = 0; i < 200 && data.reads < expected; ++i)
    std::this_thread::sleep_for(milliseconds(50));
  std::this_thread::sleep_for(milliseconds(50));
  return data.reads;
}

TEST(Loader, ReadsAheadNoMoreThanItMay) {
  const FragileImages data;
  Loader loader(data, strips(world()), options(3), world());
  loader.load({1, 1});
  EXPECT_EQ(settled(data, 6), 6);
  Loader at_the_end(data, strips(world()), options(3), world());
  at_the_end.load({3, kSteps});
  EXPECT_EQ(settled(data, 6 + kBatch), 6 + kBatch) << "there is no next epoch";
}

TEST(Loader, LeavesOutBadImagesTheSameForEveryLayout) {
  const std::vector<int64_t> order = shuffled(kImages, 7, 1);
  // Two in the first step, one of which would have been replaced by the third.
  const std::set<int64_t> bad{order[1], order[3], order[4], order[14]};
  const FragileImages data(bad);
  std::vector<int64_t> good;
  for (const int64_t sample : order)
    if (!bad.contains(sample)) good.push_back(sample);
  for (const int workers : {0, 2}) {
    int warnings = 0;
    LoaderOptions skipping = options(workers);
    skipping.skip_bad_images = true;
    skipping.warn = [&](const std::string& sentence) {
      EXPECT_NE(sentence.find("is broken"), std::string::npos) << sentence;
      ++warnings;
    };
    Loader loader(data, strips(world()), skipping, world());
    for (int64_t step = 1; step <= kSteps; ++step) {
      loader.load({1, step});
      for (int64_t place = 0; place < kBatch; ++place)
        EXPECT_EQ(loader.samples()[place], good[((step - 1) * kBatch + place) % good.size()]);
      EXPECT_EQ(pixels_of_step(loader, world()).size(), static_cast<size_t>(kBatch));
    }
    EXPECT_EQ(loader.left_out(), std::vector<int64_t>(bad.begin(), bad.end()));
    int all_warnings = 0;
    for (const int theirs : all_gather(warnings, world())) all_warnings += theirs;
    EXPECT_EQ(all_warnings, 4) << "each image is spoken of once";

    Loader resumed(data, strips(world()), skipping, world(), loader.left_out());
    resumed.load({1, 3});
    loader.load({1, 3});
    EXPECT_EQ(resumed.samples(), loader.samples());
    expect_same(pixels_of_step(resumed, world()), pixels_of_step(loader, world()));
  }
}

TEST(Loader, SaysWhenTooFewImagesAreLeft) {
  std::set<int64_t> bad;
  for (int64_t i = 0; i < kImages - 3; ++i) bad.insert(i);
  const FragileImages data(bad);
  LoaderOptions skipping = options(1);
  skipping.skip_bad_images = true;
  Loader loader(data, strips(world()), skipping, world());
  EXPECT_EQ(failure(loader, {1, 1}),
            "only 3 of 23 images can be read, less than an effective batch of 4");
}

TEST(Loader, BringsErrorsOfWorkersToTheStep) {
  const std::vector<int64_t> order = shuffled(kImages, 7, 1);
  const FragileImages data({order[5]});
  const bool reads_bad_row =
      part(kHeight, world().rank(), world().size()).contains({kHeight / 2, kHeight / 2 + 1});
  for (const int workers : {0, 2}) {
    LoaderOptions failing = options(workers);
    failing.augmentation = {};
    Loader loader(data, strips(world()), failing, world());
    EXPECT_EQ(failure(loader, {1, 1}), "");
    EXPECT_EQ(failure(loader, {1, 2}),
              reads_bad_row ? "random " + std::to_string(order[5]) + " is broken" : "");
  }
}

/// The last rank has other classes.
class Confused : public FragileImages {
 public:
  int64_t label(int64_t sample) const override {
    return world().rank() == world().size() - 1 ? 0 : FragileImages::label(sample);
  }
};

TEST(Loader, FindsRanksThatSeeOtherData) {
  const Confused data;
  Loader loader(data, strips(world()), options(), world());
  const std::string sentence = failure(loader, {1, 1});
  if (world().size() == 1) {
    EXPECT_EQ(sentence, "");
  } else {
    EXPECT_NE(sentence.find("ranks 0 and 2 do not have the same images"), std::string::npos);
  }
}

}  // namespace
}  // namespace mpi4dl::testing
