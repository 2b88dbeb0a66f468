// What PyTorch would compute otherwise than the graph is refused with a sentence, never imported
// without a word; what is only near to that is imported as it is meant.
#include <gtest/gtest.h>

#include <limits>

#include "small_import.hpp"

namespace mpi4dl {
namespace {

using testing::as;
using testing::aten;
using testing::call;
using testing::expect_has;
using testing::expect_imported;
using testing::expect_lacks;
using testing::flag;
using testing::imported;
using testing::ints;
using testing::number;
using testing::SmallProgram;
using testing::tensor;
using testing::whole;

// Views of channels.

std::string grouped(const std::string& from, const std::string& to) {
  return aten("view", {{"self", tensor(from)}, {"size", ints("2, 2, 2, 8, 8")}}, to);
}
std::string ungrouped(const std::string& from) {
  return aten("reshape", {{"self", tensor(from)}, {"shape", ints("2, 4, 8, 8")}});
}

/// Calls an operator on a grouped view and the same with its groups and channels swapped.
std::string with_swapped_groups(const std::string& operation) {
  return imported(
      {{aten("relu", {{"self", tensor("x")}}, "r"), grouped("x", "a"), grouped("r", "b"),
        aten("transpose", {{"self", tensor("b")}, {"dim0", whole(1)}, {"dim1", whole(2)}}, "t"),
        operation, ungrouped("z")}});
}

TEST(ChannelsInGroups, AreNotCombinedInAnotherOrder) {
  const auto add = [](const std::string& other) {
    return with_swapped_groups(aten("add", {{"self", tensor("a")}, {"other", tensor(other)}}, "z"));
  };
  expect_has(add("t"), "it combines axes of 2x2x2x8x8 and 2x2x2x8x8 that are not alike");
  expect_imported(add("b"));
}

TEST(ChannelsInGroups, AreNotStackedInAnotherOrder) {
  const std::string stack = aten(
      "stack", {{"tensors", as("tensors", R"([{"name": "a"}, {"name": "t"}])")}, {"dim", whole(1)}},
      "z");
  expect_has(with_swapped_groups(stack), "it stacks views of different kinds");
}

// What is as it is in evaluation.

const std::map<std::string, testing::SmallTensor> kStatistics{
    {"mean_a", {.shape = {4}, .kind = "buffer"}},
    {"mean_y", {.shape = {4}, .kind = "buffer"}},
    {"var_a", {.shape = {4}, .kind = "buffer"}},
    {"var_y", {.shape = {4}, .kind = "buffer"}}};

std::string norm(const std::string& from, bool training, const std::string& to,
                 double momentum = 0.1) {
  return aten("batch_norm",
              {{"input", tensor(from)},
               {"running_mean", tensor("mean_" + to)},
               {"running_var", tensor("var_" + to)},
               {"training", flag(training)},
               {"momentum", as("float", std::to_string(momentum))}},
              to);
}
std::string drop(const std::string& from, bool training, const std::string& to = "y") {
  return aten("dropout", {{"input", tensor(from)}, {"train", flag(training)}}, to);
}

TEST(Evaluation, IsKeptWhereOtherPartsAreInTraining) {
  const std::string norms = imported({{norm("x", true, "a"), norm("a", false, "y")}, kStatistics});
  expect_has(norms, "frozen=true");
  const std::string drops = imported({{norm("x", true, "a"), drop("a", false)}, kStatistics});
  expect_imported(drops);
  expect_lacks(drops, "dropout");
}

TEST(Evaluation, OfAllPartsIsTrained) {
  const std::string all = imported({{norm("x", false, "a"), drop("a", false)}, kStatistics});
  expect_lacks(all, "frozen=true");
  expect_has(all, "dropout");
}

TEST(BatchNorm, HasAMomentumThatIsMeant) {
  for (const bool training : {false, true})
    expect_has(imported({{norm("x", training, "y", training ? 1 : 0)}, kStatistics}),
               training ? "its momentum is 1" : "its momentum is 0");
  expect_imported(
      imported({{norm("x", true, "a"), norm("a", false, "y", /*momentum=*/0)}, kStatistics}));
}

TEST(BatchNorm, HasStatistics) {
  expect_has(imported({{aten("batch_norm", {{"input", tensor("x")}, {"training", flag(true)}})}}),
             "track_running_stats=False");
}

// Tensors of the file that forward changes.

/// Subtracts a buffer from the image, and changes it afterwards.
SmallProgram moving_mean(const std::string& change) {
  return {{aten("sub", {{"self", tensor("x")}, {"other", tensor("mean")}}), change},
          {{"mean", {.shape = {4, 1, 1}, .kind = "buffer"}}}};
}

TEST(State, IsNotChangedByWhatIsReadAgain) {
  const std::string reason = "it changes mean, on which the result depends";
  expect_has(imported(moving_mean(
                 aten("mul_", {{"self", tensor("mean")}, {"other", as("float", "0.9")}}, "z"))),
             "aten.mul_ in the model itself: " + reason);
  expect_has(
      imported(moving_mean(aten(
          "mul", {{"self", tensor("mean")}, {"other", as("float", "0.9")}, {"out", tensor("mean")}},
          "z"))),
      reason);
  const std::string functional =
      aten("mul", {{"self", tensor("mean")}, {"other", as("float", "0.9")}}, "z");
  expect_imported(imported(moving_mean(functional)));
  SmallProgram program = moving_mean(functional);
  program.changed = {{"mean", "z"}};
  expect_has(imported(program), reason);
}

TEST(State, CountsBatches) {
  expect_imported(imported({{aten("add_", {{"self", tensor("count")}, {"other", whole(1)}}, "z"),
                             aten("relu", {{"self", tensor("x")}})},
                            {{"count", {.shape = {}, .kind = "buffer"}}}}));
}

// Types of numbers.

TEST(Conversions, KeepFloatingPointNumbers) {
  const auto to = [](const std::string& target, int type) {
    return imported(
        {{aten(target, {{"self", tensor("x")}, {"dtype", as("scalar_type", std::to_string(type))}},
               "a"),
          aten("relu", {{"self", tensor("a")}})}});
  };
  for (const std::string target : {"to", "_to_copy"}) {
    for (const int type : {6, 7, 8, 13}) expect_imported(to(target, type));
    for (const int type : {0, 1, 4, 5, 9, 12, 99})
      expect_has(to(target, type), "it makes whole numbers");
  }
}

TEST(Conversions, AreNotToTheTypeOfCounters) {
  const auto as_type_of = [](const std::string& other) {
    return imported({{aten("type_as", {{"self", tensor("x")}, {"other", other}})}});
  };
  expect_has(as_type_of(whole(3)), "it makes whole numbers");
}

// Random masks.

TEST(Masks, AreOfOneValueEach) {
  const std::vector<std::string> calls{
      aten("rand", {{"size", ints("2, 1, 1, 1")}}, "n"),
      aten("add", {{"self", tensor("n")}, {"other", as("float", "0.5")}}, "s"),
      aten("floor", {{"self", tensor("s")}}, "m"),
      aten("mul", {{"self", tensor("x")}, {"other", tensor("m")}}, "a")};
  std::vector<std::string> once = calls, twice = calls;
  once.push_back(aten("relu", {{"self", tensor("a")}}));
  twice.push_back(aten("mul", {{"self", tensor("a")}, {"other", tensor("m")}}));
  expect_imported(imported({once}));
  expect_has(imported({twice}), "its mask is that of another value too");
}

TEST(Masks, OfChannelsAreNotThoseOfAnotherAxis) {
  const std::string permuted =
      aten("permute", {{"self", tensor("x")}, {"dims", ints("0, 2, 3, 1")}}, "p");
  const std::string dropped =
      aten("feature_dropout", {{"input", tensor("p")}, {"train", flag(true)}}, "d");
  const std::string back = aten("permute", {{"self", tensor("d")}, {"dims", ints("0, 3, 1, 2")}});
  expect_has(imported({{permuted, dropped, back}}), "whose second axis is not that of channels");
}

// Windows.

TEST(AveragePool, DividesByWhatItIsTold) {
  const auto pool = [](const std::vector<testing::NamedArgument>& more) {
    std::vector<testing::NamedArgument> all{
        {"self", tensor("x")}, {"kernel_size", ints("3, 3")}, {"divisor_override", whole(9)}};
    all.insert(all.end(), more.begin(), more.end());
    return imported({{aten("avg_pool2d", all)}});
  };
  expect_imported(pool({}));
  expect_imported(pool({{"padding", ints("1, 1")}}));
  const std::string reason = "its divisor_override is not the number of pixels of each window";
  expect_has(pool({{"padding", ints("1, 1")}, {"count_include_pad", flag(false)}}), reason);
  expect_has(pool({{"ceil_mode", flag(true)}}), reason);
}

// Pixels that are taken out.

std::string every_second(int64_t start) {
  return aten("slice", {{"self", tensor("x")},
                        {"dim", whole(2)},
                        {"start", whole(start)},
                        {"end", whole(std::numeric_limits<int64_t>::max())},
                        {"step", whole(2)}});
}

TEST(Slices, MayTakeEverySecondPixel) {
  for (const Extents& image : {Extents{8, 8}, Extents{9, 8}}) {
    expect_has(imported({{every_second(0)}}, image), "max_pooling(input) kernel=1x1 stride=2x1");
    expect_has(imported({{every_second(1)}}, image), "before=-1x0");
  }
}

TEST(Selection, MayTakeThePixelOfAPooledValue) {
  const auto selected = [](int64_t index) {
    return imported(
        {{aten("adaptive_avg_pool2d", {{"self", tensor("x")}, {"output_size", ints("1, 1")}}, "p"),
          aten("select", {{"self", tensor("p")}, {"dim", whole(2)}, {"index", whole(0)}}, "s"),
          aten("select", {{"self", tensor("s")}, {"dim", whole(-1)}, {"index", whole(index)}}, "t"),
          aten("relu", {{"self", tensor("t")}})}});
  };
  expect_imported(selected(0));
  expect_imported(selected(-1));
  expect_has(selected(1), "there is no element 1 of 1");
}

TEST(Products, WithAMatrixOfTheFileAreNoAttention) {
  const std::string said =
      imported({{aten("mean", {{"self", tensor("x")}, {"dim", ints("2, 3")}}, "p"),
                 aten("matmul", {{"self", tensor("p")}, {"other", tensor("w")}})},
                {{"w", {.shape = {4, 4}}}}});
  expect_has(said, "it multiplies by a matrix of the file");
  expect_lacks(said, "attention");
}

// Names.

/// The part `sub` has the name that the constant of the call `sub` would get.
TEST(Constants, HaveNamesOfTheirOwn) {
  const std::string text =
      imported({{aten("sub", {{"self", tensor("x")}, {"other", tensor("mean")}}, "sub"),
                 aten("batch_norm", {{"input", tensor("sub")},
                                     {"weight", tensor("sub.weight")},
                                     {"bias", tensor("sub.bias")},
                                     {"running_mean", tensor("m")},
                                     {"running_var", tensor("v")},
                                     {"training", flag(true)}})},
                {{"m", {.shape = {4}, .kind = "buffer"}},
                 {"v", {.shape = {4}, .kind = "buffer"}},
                 {"mean", {.shape = {4, 1, 1}, .kind = "buffer"}},
                 {"sub.weight", {.shape = {4}}},
                 {"sub.bias", {.shape = {4}}}}});
  expect_imported(text);
  expect_has(text, "frozen sub.weight_");
}

}  // namespace
}  // namespace mpi4dl
