// A file that was exported at one size is imported at another where its numbers do not come from
// its size, and refused with a sentence where they may.
#include <gtest/gtest.h>

#include "small_import.hpp"

namespace mpi4dl {
namespace {

using testing::as;
using testing::aten;
using testing::expect_has;
using testing::expect_imported;
using testing::flag;
using testing::imported;
using testing::ints;
using testing::number;
using testing::tensor;
using testing::whole;

TEST(AnotherSize, KeepsThePaddingOfConvolutions) {
  const auto pad = [](const std::string& of) {
    return imported({{aten("pad",
                           {{"self", tensor("x")},
                            {"pad", ints("1, 1, 1, 1")},
                            {"mode", as("string", R"("reflect")")}},
                           "y", of)}},
                    {16, 16});
  };
  expect_imported(pad("torch.nn.modules.conv.Conv2d"));
  expect_has(pad("nets.Net"), "its padding is a number that may come from the size");
}

/// Pools an exported image of 8x8, at another size.
std::string pooled(const std::string& target, const std::string& size, const std::string& of = "",
                   const std::string& argument = "kernel_size") {
  return imported({{aten(target, {{"self", tensor("x")}, {argument, ints(size)}}, "y", of)}},
                  {16, 16});
}

TEST(AnotherSize, NeedsAnotherKernelWhereThatWasTheMap) {
  const std::string reason = "its kernel is a number that may come from the size";
  expect_has(pooled("avg_pool2d", "8, 8"), reason);
  expect_has(pooled("avg_pool2d", "8, 1"), reason);
  expect_has(pooled("max_pool2d", "8, 8"), reason);
  expect_imported(pooled("avg_pool2d", "8, 8", "torch.nn.modules.pooling.AvgPool2d"));
  expect_imported(pooled("avg_pool2d", "4, 4"));
  expect_imported(pooled("max_pool2d", "2, 2"));
}

/// A pool whose kernel is the size of the map before its own input.
TEST(AnotherSize, NeedsAnotherKernelWhereThatWasAnotherMap) {
  const auto pooled_twice = [](const std::string& kernel) {
    return imported(
        {{aten("max_pool2d", {{"self", tensor("x")}, {"kernel_size", ints("2, 2")}}, "half",
               "torch.nn.modules.pooling.MaxPool2d"),
          aten("avg_pool2d", {{"self", tensor("x")}, {"kernel_size", ints(kernel)}}, "pooled"),
          aten("cat", {{"tensors", as("tensors", R"([{"name": "pooled"}])")}, {"dim", whole(1)}},
               "c"),
          aten("mean", {{"self", tensor("half")}, {"dim", ints("2, 3")}, {"keepdim", flag(true)}},
               "m"),
          aten("mul", {{"self", tensor("c")}, {"other", tensor("m")}})},
         {},
         {{"half", {2, 4, 4, 4}}}},
        {16, 16});
  };
  expect_has(pooled_twice("4, 4"), "its kernel is a number that may come from the size");
  expect_imported(pooled_twice("5, 5"));
}

TEST(AnotherSize, NeedsAnotherPoolWhereItsResultWasAsLongAsTheMap) {
  const std::string module = "torch.nn.modules.pooling.AdaptiveAvgPool2d";
  const auto adaptive = [](const std::string& size, const std::string& of) {
    return pooled("adaptive_avg_pool2d", size, of, "output_size");
  };
  const std::string reason = "its size is a number that may come from the size";
  expect_has(adaptive("8, 2", module), reason);  // (None, 2)
  expect_has(adaptive("8, 1", module), reason);
  expect_has(adaptive("8, 8", "nets.Net"), reason);
  for (const char* size : {"1, 1", "7, 7", "8, 8", "3, 6"}) expect_imported(adaptive(size, module));
  for (const char* size : {"1, 1", "7, 7"}) expect_imported(adaptive(size, "nets.Net"));
}

TEST(AnotherSize, MayNeedPaddingWhereNoneWas) {
  const auto padded = [](const Extents& image) {
    return imported({{aten("pad", {{"self", tensor("x")}, {"pad", ints("0, 0, 0, 0")}}, "p"),
                      aten("max_pool2d", {{"self", tensor("p")}, {"kernel_size", ints("2, 2")}})}},
                    image);
  };
  expect_has(padded({9, 8}), "its padding is a number that may come from the size");
  expect_imported(padded({12, 10}));
}

/// Two strides come together: 8 and 12 are multiples of both, 10 is not.
TEST(AnotherSize, MayNeedPaddingBehindStrides) {
  const auto padded = [](const Extents& image) {
    return imported(
        {{aten("max_pool2d", {{"self", tensor("x")}, {"kernel_size", ints("2, 2")}}, "a"),
          aten("pad", {{"self", tensor("a")}, {"pad", ints("0, 0, 0, 0")}}, "p"),
          aten("avg_pool2d", {{"self", tensor("p")}, {"kernel_size", ints("2, 2")}})}},
        image);
  };
  expect_has(padded({10, 8}), "its padding is a number that may come from the size");
  expect_imported(padded({12, 8}));
}

TEST(AnotherSize, KeepsChannelsOfZeros) {
  expect_imported(imported(
      {{aten("pad", {{"self", tensor("x")}, {"pad", ints("0, 0, 0, 0, 2, 2")}})}}, {9, 9}));
}

TEST(AnotherSize, NeedsAnotherRange) {
  const auto sliced = [](int64_t start, int64_t end, const Extents& image) {
    return imported({{aten("slice",
                           {{"self", tensor("x")},
                            {"dim", whole(2)},
                            {"start", whole(start)},
                            {"end", whole(end)}},
                           "a"),
                      aten("relu", {{"self", tensor("a")}})}},
                    image);
  };
  const std::string reason = "its range is a number that may come from the size";
  expect_has(sliced(0, 4, {4, 4}), reason);
  expect_has(sliced(0, 4, {16, 16}), reason);
  expect_has(sliced(0, -1, {16, 16}), reason);
  expect_imported(sliced(0, 8, {4, 4}));
  expect_imported(sliced(0, std::numeric_limits<int64_t>::max(), {16, 16}));
  expect_imported(sliced(0, 4, {8, 8}));
}

}  // namespace
}  // namespace mpi4dl
