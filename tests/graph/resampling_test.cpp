#include "graph/resampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace mpi4dl {
namespace {

using Precision = Resampling::Precision;

/// Holds what PyTorch 2.15 mixes an output from; it leaves out what has no weight.
struct Golden {
  Resampling axis;
  int64_t output;
  int64_t first;
  std::vector<double> single, twofold;
};

void expect_weights(const Golden& golden, Precision precision, double tolerance) {
  const auto& weights = precision == Precision::single ? golden.single : golden.twofold;
  const auto mixture = golden.axis.mixture(golden.output, precision);
  for (size_t tap = 0; tap < weights.size(); ++tap) {
    EXPECT_EQ(mixture.inputs[tap], golden.first + static_cast<int64_t>(tap));
    EXPECT_NEAR(mixture.weights[tap], weights[tap], tolerance)
        << golden.axis.inputs << " to " << golden.axis.outputs << ", output " << golden.output;
  }
}

const std::vector<Golden> kGolden{
    {{7, 13, 0, Interpolation::bilinear},
     5,
     2,
     {0.53846144676208496, 0.46153855323791504},
     {0.53846153846153877, 0.46153846153846123}},
    {{97, 291, 0, Interpolation::bilinear},
     200,
     66,
     {0.66666412353515625, 0.33333587646484375},
     {0.6666666666666714, 0.3333333333333286}},
    {{32768, 98304, 0, Interpolation::bilinear},
     98000,
     32666,
     {0.666015625, 0.333984375},
     {0.66666666666787933, 0.33333333333212067}},
    {{65537, 30011, 0, Interpolation::bilinear},
     29990,
     65491,
     {0.26953125, 0.73046875},
     {0.26720202592696296, 0.73279797407303704}},
    {{50001, 98303, 0, Interpolation::bilinear, true},
     77777,
     39560,
     {0.765625, 0.234375},
     {0.76724786881095497, 0.23275213118904503}},
    {{98304, 32768, 0, Interpolation::bilinear, true},
     32000,
     96001,
     {0.046875, 0.953125},
     {0.046815393536235206, 0.95318460646376479}},
    {{1000, 1370, 1.37, Interpolation::bilinear},
     1300,
     948,
     {0.22991943359375, 0.77008056640625},
     {0.22992700729923854, 0.77007299270076146}},
    // A little less than 45895 in float64, which float32 does not have.
    {{50001, 98303, 0, Interpolation::bilinear}, 90231, 45895, {1}, {1}},
    {{4096, 12288, 0, Interpolation::bicubic, true},
     9000,
     2998,
     {-0.09150242805480957, 0.57831966876983643, 0.6090773344039917, -0.095894575119018555},
     {-0.091510230587623642, 0.57837214046429408, 0.60902556007389008, -0.095887469950560966}},
    {{65537, 30011, 0, Interpolation::bicubic, true},
     29990,
     65491,
     {-0.11104822158813477, 0.80608642101287842, 0.35823929309844971, -0.053277492523193359},
     {-0.11104362635487464, 0.80643417835932696, 0.3578053103972082, -0.05319586240166041}}};

TEST(Resampling, MixesAsPyTorchDoesInFloat32) {
  for (const Golden& golden : kGolden) expect_weights(golden, Precision::single, 5e-7);
}

TEST(Resampling, MixesAsPyTorchDoesInFloat64) {
  for (const Golden& golden : kGolden) expect_weights(golden, Precision::twofold, 5e-11);
}

/// Returns the nearest input in whole numbers, which float32 often misses by one.
int64_t in_whole_numbers(const Resampling& axis, int64_t output) {
  if (axis.mode == Interpolation::nearest) return output * axis.inputs / axis.outputs;
  return (2 * output + 1) * axis.inputs / (2 * axis.outputs);
}

TEST(Resampling, FindsNearestInputsInFloat32AsPyTorchDoes) {
  struct Case {
    Resampling axis;
    int64_t others, last, input;  ///< as PyTorch 2.15 has them
  };
  for (const auto& [axis, others, last, input] :
       {Case{{65537, 30011, 0, Interpolation::nearest}, 10, 24270, 53000},
        Case{{50001, 98303, 0, Interpolation::nearest}, 163, 98187, 49942},
        Case{{30011, 65537, 0, Interpolation::nearest_exact}, 71, 65388, 29943}})
    for (const Precision precision : {Precision::single, Precision::twofold}) {
      int64_t count = 0;
      for (int64_t output = 0; output < axis.outputs; ++output)
        count += axis.mixture(output, precision).inputs[0] != in_whole_numbers(axis, output);
      EXPECT_EQ(count, others);
      EXPECT_EQ(axis.mixture(last, precision).inputs[0], input);
    }
}

TEST(Resampling, NeedsWhatItReads) {
  for (const int mode : {0, 1, 2, 3})
    for (const bool align : {false, true})
      for (const int64_t outputs : {1, 5, 16, 17, 31, 34, 90}) {
        const Resampling axis{.inputs = 17,
                              .outputs = outputs,
                              .factor = outputs == 31 ? 1.87 : 0,
                              .mode = static_cast<Interpolation>(mode),
                              .align_corners = align && mode > 1};
        for (int64_t begin = 0; begin < outputs; ++begin)
          for (int64_t end = begin + 1; end <= outputs; ++end) {
            Interval read;
            for (int64_t output = begin; output < end; ++output)
              for (const Precision precision : {Precision::single, Precision::twofold})
                for (int tap = 0; tap < axis.taps(); ++tap) {
                  const int64_t input = axis.mixture(output, precision).inputs[tap];
                  read = hull(read, {input, input + 1});
                }
            ASSERT_EQ(axis.need({begin, end}), read) << mode << " to " << outputs;
          }
      }
}

TEST(Resampling, WeighsToOne) {
  for (const Interpolation mode : {Interpolation::bilinear, Interpolation::bicubic})
    for (int64_t output = 0; output < 31; ++output) {
      const auto mixture =
          Resampling{.inputs = 17, .outputs = 31, .mode = mode}.mixture(output, Precision::twofold);
      double sum = 0;
      for (const double weight : mixture.weights) sum += weight;
      EXPECT_NEAR(sum, 1, 1e-14);
    }
}

}  // namespace
}  // namespace mpi4dl
