// Images that turn out to be bad on one rank count on none, and do not change what a model says of
// the others.
#include "train/examination.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "data/synthetic.hpp"
#include "models/registry.hpp"
#include "plan/balance.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

constexpr int64_t kImages = 7, kSide = 32, kClasses = 3;

/// Has random images, of which some have a bad last row: the ranks with the lower tiles notice.
class FragileImages : public RandomImages {
 public:
  explicit FragileImages(std::set<int64_t> bad)
      : RandomImages({.size = kImages,
                      .classes = kClasses,
                      .image = {.channels = 3, .space = {kSide, kSide}},
                      .seed = 3}),
        bad_(std::move(bad)) {}

  at::Tensor read(int64_t sample, const Box& box) const override {
    ensure(!bad_.contains(sample) || box[2].end < kSide, "{} is broken", name(sample));
    return RandomImages::read(sample, box);
  }

 private:
  std::set<int64_t> bad_;
};

/// Has a model on all ranks, and what it is asked.
struct Exam {
  explicit Exam(std::set<int64_t> broken, bool skip = false, BadSamples known = {})
      : data(std::make_shared<FragileImages>(std::move(broken))) {
    ExaminationOptions options;
    options.evaluator.cells = balance_cells(graph, stages);
    options.evaluator.type = c10::ScalarType::Double;
    options.evaluator.batch = 2;
    options.skip_bad_images = skip;
    options.bad = std::move(known);
    options.warn = [this](const std::string& sentence) { warnings.push_back(sentence); };
    parameters = make_parameters(graph, options.evaluator.cells, groups, at::kDouble, 1);
    examination = std::make_unique<Examination>(data, graph, layout, groups, parameters,
                                                std::move(options), world());
  }

  std::vector<Grid> stages{make_grid("square", world().size())};
  Graph graph = build_model({.name = "resnet",
                             .image = {kSide, kSide},
                             .classes = kClasses,
                             .resnet_version = 1,
                             .depth = 8});
  Layout layout{world().size(), stages};
  ProcessGroups groups{layout, world()};
  StageParameters parameters;
  std::shared_ptr<const Dataset> data;
  std::vector<std::string> warnings;
  std::unique_ptr<Examination> examination;
};

TEST(Examination, LeavesOutWhatAnyRankCannotRead) {
  Exam whole({}), skipping({2, 6}, true, {{4, "known"}});
  const at::Tensor expected = whole.examination->run().logits;
  for (int run = 0; run < 2; ++run) {
    const Predictions found = skipping.examination->run();
    ASSERT_EQ(found.logits.size(0), kImages);
    for (const int64_t sample : {0, 1, 3, 5})
      EXPECT_LE((found.logits[sample] - expected[sample]).norm().item<double>(), 1e-12) << sample;
    EXPECT_EQ(skipping.examination->bad(),
              (BadSamples{{2, "random 2 is broken"}, {4, "known"}, {6, "random 6 is broken"}}));
    const Metrics metrics = measure(found, *skipping.data, skipping.examination->bad());
    EXPECT_EQ(metrics.images, 4);
    // One rank tells of each, once.
    const std::vector<std::string> twice{"left out: random 2 is broken",
                                         "left out: random 6 is broken"};
    EXPECT_EQ(skipping.warnings, world().rank() == 0 ? twice : std::vector<std::string>());
  }
}

TEST(Examination, SaysWhereNothingIsLeft) {
  const auto sentence = [](const std::function<void()>& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing is wrong";
  };
  Exam exam({0, 1, 2, 3, 4, 5, 6}, true);
  EXPECT_EQ(sentence([&] { exam.examination->run(); }), "none of 7 images can be read");
  BadSamples all;
  for (int64_t sample = 0; sample < kImages; ++sample) all[sample] = "known";
  EXPECT_EQ(sentence([&] { Exam({}, true, all); }), "none of 7 images can be read");
}

TEST(Examination, FailsUnlessItIsToldToSkip) {
  Exam exam({2});
  if (world().size() > 1) return;  // the ranks that read the last row fail alone
  EXPECT_THROW(exam.examination->run(), Error);
}

}  // namespace
}  // namespace mpi4dl::testing
