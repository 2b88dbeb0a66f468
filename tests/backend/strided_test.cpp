#include "backend/strided.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/expects.hpp"

namespace mpi4dl {
namespace {

const Box kWhole{{0, 2}, {0, 1}, {0, 5}, {0, 4}};
const Box kColumns{{0, 2}, {0, 1}, {0, 5}, {1, 3}};

Box with_channels(Box box, int64_t channels) {
  box[1] = {0, channels};
  return box;
}

Patch patch_of(const Box& box, const at::Tensor& values) {
  return {box, values.contiguous(c10::MemoryFormat::ChannelsLast)};
}

// A run of bytes is copied in words that overlap, so each length is a case of its own; nothing
// beside the run may change.
TEST(Strided, CopiesRunsOfEveryLengthAndNothingElse) {
  for (int64_t channels = 1; channels <= 300; ++channels) {
    const Box whole = with_channels(kWhole, channels);
    const Box columns = with_channels(kColumns, channels);
    const Patch source = patch_of(whole, at::randint(1, 256, whole.shape(), at::kByte));
    const Patch target = patch_of(whole, at::zeros(whole.shape(), at::kByte));
    copy(strided(target, columns), strided(source, columns));
    const Patch expected = patch_of(whole, at::zeros(whole.shape(), at::kByte));
    expected.view(columns).copy_(source.view(columns));
    ASSERT_TRUE(at::equal(target.data, expected.data)) << channels << " bytes a pixel";
  }
}

/// Covers runs of every length, and of types that have no loop of their own too.
TEST(Strided, AddsAndClearsABoxAndNothingElse) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (int64_t channels = 1; channels <= 70; ++channels) {
      const Box whole = with_channels(kWhole, channels);
      const Box columns = with_channels(kColumns, channels);
      const auto draw = [&] {
        return patch_of(whole, at::randint(-9, 9, whole.shape(), at::kDouble).to(type));
      };
      const Patch source = draw(), target = draw();
      const Patch expected{whole, target.data.clone()};
      add(strided(target, columns), strided(source, columns));
      expected.view(columns).add_(source.view(columns));
      ASSERT_TRUE(at::equal(target.data, expected.data)) << channels << " channels of " << type;
      clear(strided(target, columns));
      expected.view(columns).zero_();
      ASSERT_TRUE(at::equal(target.data, expected.data)) << channels << " channels of " << type;
    }
}

TEST(Strided, IsPromisedOneShapeAndType) {
  if (!kChecked) GTEST_SKIP() << "promises are checked in Debug and sanitizer builds";
  const Patch patch = patch_of(kWhole, at::zeros(kWhole.shape()));
  const Patch other = patch_of(kWhole, at::zeros(kWhole.shape(), at::kDouble));
  EXPECT_THROW(copy(strided(patch, kWhole), strided(patch, kColumns)), Error);
  EXPECT_THROW(add(strided(patch, kWhole), strided(patch, kColumns)), Error);
  EXPECT_THROW(copy(strided(patch, kWhole), strided(other, kWhole)), Error);
  EXPECT_THROW(add(strided(patch, kWhole), strided(other, kWhole)), Error);
}

TEST(Strided, NamesABoxThatDoesNotLieInside) {
  const Box whole = with_channels(kWhole, 3);
  const Patch patch = patch_of(whole, at::zeros(whole.shape()));
  Box outside = whole;
  outside[3] = {2, 5};
  EXPECT_THROW(strided(patch, outside), Error);
  EXPECT_THROW(patch.view(outside), Error);
}

}  // namespace
}  // namespace mpi4dl
