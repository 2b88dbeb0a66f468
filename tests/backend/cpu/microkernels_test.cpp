// Every row of the tables of microkernels that the processor can run, against products written out:
// taps anywhere, neighbouring taps, all counts of pixels up to a few register tiles, any count of
// channels, residuals; and that the rows chosen are those that suit.
#include "backend/cpu/microkernels.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>

#include "backend/cpu/by_type.hpp"
#include "backend/cpu/vectorised.hpp"
#include "support/dice.hpp"

namespace mpi4dl::testing {
namespace {

template <typename T>
std::vector<T> draw(Dice& dice, int64_t count) {
  std::vector<T> values(count);
  for (T& value : values)
    value = narrow_to<T>(static_cast<Wide<T>>(dice.pick(-8, 8)) / 8);  // exact in bfloat16
  return values;
}

std::string describe(const auto& kernel) {
  return fmt::format("{} {} {}x{}", name_of(kernel.set), c10::toString(kernel.operand), kernel.rows,
                     kernel.width);
}

/// Values are eighths and sums stay small, so float32 and float64 are exact; only what is stored as
/// bfloat16 is rounded, once.
template <typename T, typename Stored>
void expect_products(const Microkernel& kernel, Dice& dice, int64_t pixels, bool neighbours) {
  const int64_t width = kernel.width, k = kernel.k_unit * dice.pick(1, 5);
  const int64_t x_pitch = neighbours ? k : k + kernel.k_unit * dice.pick(0, 2);
  const int64_t taps = neighbours ? 1 : dice.pick(0, 3), tap_channels = neighbours ? 4 * k : k;
  const int64_t y_channels = dice.pick(1, width), y_pitch = y_channels + dice.pick(0, 3);
  const int64_t residual_pitch = y_channels + dice.pick(0, 3);
  const std::vector<T> x = draw<T>(dice, (pixels + 8) * x_pitch + tap_channels);
  const std::vector<T> weights = draw<T>(dice, std::max<int64_t>(taps, 1) * tap_channels * width);
  const std::vector<Wide<T>> bias = draw<Wide<T>>(dice, width);
  const std::vector<Stored> residual = draw<Stored>(dice, pixels * residual_pitch + 1);
  std::vector<T> panel(weights.size());
  std::vector<TapOffset> offsets;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t at = tap * tap_channels * width;
    offsets.push_back({neighbours ? 0 : dice.pick(0, 4) * x_pitch, at, tap_channels});
    kernel.pack({weights.data() + at, tap_channels, width, y_channels, 1}, width,
                panel.data() + at);
  }
  for (const Stored* more : {static_cast<const Stored*>(nullptr), residual.data()}) {
    const auto untouched = narrow_to<Stored>(Wide<Stored>{77});
    std::vector<Stored> y(pixels * y_pitch + width, untouched);
    kernel.run({.x = x.data(),
                .x_pitch = x_pitch,
                .taps = offsets.data(),
                .tap_count = taps,
                .panel = panel.data(),
                .bias = bias.data(),
                .residual = more,
                .residual_pitch = residual_pitch,
                .y = y.data(),
                .y_pitch = y_pitch,
                .y_channels = y_channels,
                .pixels = pixels});
    for (int64_t pixel = 0; pixel < pixels; ++pixel)
      for (int64_t channel = 0; channel < y_pitch; ++channel) {
        double sum = bias[std::min(channel, width - 1)];
        if (channel < y_channels) {
          for (const TapOffset& tap : offsets)
            for (int64_t i = 0; i < tap.channels; ++i)
              sum += static_cast<double>(widen(x[pixel * x_pitch + tap.pixel + i])) *
                     widen(weights[tap.weight + i * width + channel]);
          if (more != nullptr) sum += widen(more[pixel * residual_pitch + channel]);
        }
        const Stored expected =
            channel < y_channels ? narrow_to<Stored>(static_cast<Wide<Stored>>(sum)) : untouched;
        ASSERT_EQ(widen(y[pixel * y_pitch + channel]), widen(expected))
            << "pixel " << pixel << " of " << pixels << ", channel " << channel << " of "
            << y_channels;
      }
  }
}

TEST(Microkernels, SumTheProductsOfAllTaps) {
  for (const Microkernel& kernel : microkernels()) {
    if (kernel.set > instruction_set()) continue;
    SCOPED_TRACE(describe(kernel) + " stored as " + c10::toString(kernel.stored));
    Dice dice{3};
    for (int64_t pixels = 0; pixels <= 3 * kernel.rows + 1; ++pixels)
      for (const bool neighbours : {false, true}) {
        by_type(kernel.stored, [&]<typename Stored>(Stored) {
          if (kernel.operand == kernel.stored)
            expect_products<Stored, Stored>(kernel, dice, pixels, neighbours);
          else
            expect_products<Wide<Stored>, Stored>(kernel, dice, pixels, neighbours);
        });
        if (::testing::Test::HasFatalFailure()) return;
      }
  }
}

/// Weights may lie row by row, column by column, or with gaps everywhere.
TEST(Microkernels, PackWeightsOfAnyStrides) {
  for (const Microkernel& kernel : microkernels()) {
    if (kernel.set > instruction_set()) continue;
    SCOPED_TRACE(describe(kernel));
    Dice dice{4};
    by_type(kernel.operand, [&]<typename T>(T) {
      for (int trial = 0; trial < 60; ++trial) {
        const int64_t rows = kernel.k_unit * dice.pick(1, 40), columns = dice.pick(1, kernel.width);
        const auto [row_stride, column_stride] = std::array<std::pair<int64_t, int64_t>, 3>{
            {{columns, 1},
             {1, rows},
             {2 * columns, 2}}}.at(trial % 3);
        const std::vector<T> weights = draw<T>(dice, 2 * rows * columns);
        std::vector<T> panel(rows * kernel.width, narrow_to<T>(Wide<T>{77}));
        kernel.pack({weights.data(), rows, row_stride, columns, column_stride}, kernel.width,
                    panel.data());
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t column = 0; column < kernel.width; ++column) {
            const int64_t unit = kernel.k_unit;  // rows that are interleaved
            const T packed = panel[row / unit * unit * kernel.width + column * unit + row % unit];
            ASSERT_EQ(widen(packed), column < columns
                                         ? widen(weights[row * row_stride + column * column_stride])
                                         : Wide<T>{0});
          }
      }
    });
  }
}

TEST(OuterMicrokernels, AddTheProductsOfAllPixels) {
  for (const OuterMicrokernel& kernel : outer_microkernels()) {
    if (kernel.set > instruction_set()) continue;
    SCOPED_TRACE(describe(kernel));
    Dice dice{6};
    by_type(kernel.operand, [&]<typename T>(T) {
      for (int64_t rows = 1; rows <= 3 * kernel.rows + 1; ++rows) {
        const int64_t columns = dice.pick(1, kernel.width), pixels = dice.pick(0, 9), offset = 2;
        const int64_t x_pitch = kernel.width + offset, g_pitch = rows + 1, sum_pitch = columns + 1;
        const std::vector<T> x = draw<T>(dice, 2 * (pixels + 1) * x_pitch),
                             g = draw<T>(dice, 2 * (pixels + 1) * g_pitch);
        const std::vector<T> before = draw<T>(dice, rows * sum_pitch);
        std::vector<T> sum = before;
        const std::vector<PixelPairs> pairs{
            {x.data(), g.data(), pixels},
            {x.data() + (pixels + 1) * x_pitch, g.data() + (pixels + 1) * g_pitch, pixels}};
        kernel.run({.pairs = pairs.data(),
                    .pair_count = std::ssize(pairs),
                    .x_pitch = x_pitch,
                    .g_pitch = g_pitch,
                    .x_offset = offset,
                    .rows = rows,
                    .columns = columns,
                    .sum = sum.data(),
                    .sum_pitch = sum_pitch});
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t column = 0; column < sum_pitch; ++column) {
            T expected = before[row * sum_pitch + column];
            for (int64_t pixel = 0; pixel < 2 * pixels + 1 && column < columns; ++pixel)
              if (pixel != pixels)  // between the pairs
                expected += x[pixel * x_pitch + offset + column] * g[pixel * g_pitch + row];
            ASSERT_EQ(sum[row * sum_pitch + column], expected);
          }
      }
    });
  }
}

TEST(Microkernels, AreChosenByTypeSetAndChannels) {
  using enum InstructionSet;
  const auto chosen = [](c10::ScalarType type, InstructionSet set, int64_t channels,
                         int64_t depth) {
    return describe(choose_microkernel(type, set, channels, depth));
  };
  EXPECT_EQ(chosen(at::kFloat, sse2, 4, 9), "sse2 Float 12x4");
  EXPECT_EQ(chosen(at::kFloat, sse2, 5, 9), "sse2 Float 6x8");
#ifdef __x86_64__
  EXPECT_EQ(chosen(at::kFloat, avx2, 8, 9), "avx2 Float 12x8");
  EXPECT_EQ(chosen(at::kFloat, avx2, 64, 9), "avx2 Float 6x16");
  EXPECT_EQ(chosen(at::kDouble, avx2, 64, 9), "avx2 Double 6x8");
  EXPECT_EQ(chosen(at::kFloat, avx512, 16, 9), "avx512 Float 12x16");
  EXPECT_EQ(chosen(at::kFloat, avx512, 64, 9), "avx512 Float 6x64");
  EXPECT_EQ(chosen(at::kFloat, avx512, 96, 9), "avx512 Float 8x48");
  EXPECT_EQ(chosen(at::kFloat, avx512, 64, 1 << 20), "avx512 Float 12x32");  // a panel beyond L2
  EXPECT_EQ(chosen(at::kFloat, amx, 64, 9), "avx512 Float 6x64");
  EXPECT_EQ(chosen(at::kBFloat16, avx512, 64, 9), "avx512 Float 6x64");
  EXPECT_EQ(chosen(at::kBFloat16, amx, 64, 9), "amx BFloat16 32x32");
  EXPECT_EQ(describe(choose_outer_microkernel(at::kFloat, amx, 48)), "avx512 Float 8x48");
#endif
}

}  // namespace
}  // namespace mpi4dl::testing
