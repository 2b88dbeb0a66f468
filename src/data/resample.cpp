#include "data/resample.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace mpi4dl {
namespace {

constexpr int kChannels = 3;

at::Tensor copy_rows(Raster& source, const Interval& rows, const Interval& cols) {
  at::Tensor pixels = at::empty({rows.length(), cols.length(), kChannels}, at::kByte);
  const int64_t bytes = cols.length() * kChannels;
  auto* out = pixels.data_ptr<uint8_t>();
  source.scan(rows, cols, [&](int64_t row, const uint8_t* rgb) {
    std::memcpy(out + (row - rows.begin) * bytes, rgb, bytes);
  });
  return pixels;
}

std::vector<AxisFilter::Taps> taps_of(const AxisFilter& filter, const Interval& outputs) {
  std::vector<AxisFilter::Taps> taps;
  for (int64_t i = outputs.begin; i < outputs.end; ++i) taps.push_back(filter.taps(i));
  return taps;
}

/// Turns a row of bytes into one of 16-bit values, 256 for a full one, at the new width.
void filter_row(const uint8_t* rgb, int64_t first_column, const std::vector<AxisFilter::Taps>& taps,
                std::vector<uint32_t>& out) {
  for (size_t x = 0; x < taps.size(); ++x) {
    const uint8_t* pixel = rgb + (taps[x].first - first_column) * kChannels;
    uint32_t sum[kChannels] = {};
    for (const uint32_t weight : taps[x].weights)
      for (uint32_t& channel : sum) channel += weight * *pixel++;
    for (int c = 0; c < kChannels; ++c) out[x * kChannels + c] = (sum[c] + 128) >> 8;
  }
}

}  // namespace

AxisFilter::AxisFilter(int64_t from, int64_t to)
    : from_(from),
      step_(static_cast<double>(from) / static_cast<double>(to)),
      support_(std::max(step_, 1.0)) {}

double AxisFilter::centre(int64_t output) const {
  return (static_cast<double>(output) + 0.5) * step_ - 0.5;
}

Interval AxisFilter::support(int64_t output) const {
  const auto begin = static_cast<int64_t>(std::floor(centre(output) - support_)) + 1;
  const auto end = static_cast<int64_t>(std::ceil(centre(output) + support_));
  return intersect({begin, end}, {0, from_});
}

AxisFilter::Taps AxisFilter::taps(int64_t output) const {
  const Interval inputs = support(output);
  std::vector<double> heights;
  for (int64_t i = inputs.begin; i < inputs.end; ++i)
    heights.push_back(
        std::max(0.0, 1 - std::abs(static_cast<double>(i) - centre(output)) / support_));
  const double sum = std::accumulate(heights.begin(), heights.end(), 0.0);
  Taps taps{inputs.begin, {}};
  for (const double height : heights)
    taps.weights.push_back(static_cast<uint32_t>(std::lround(height / sum * kOne)));
  // What rounding has added or lost goes to the largest, so that a plain colour stays what it is.
  const uint32_t rounded = std::accumulate(taps.weights.begin(), taps.weights.end(), 0U);
  *std::max_element(taps.weights.begin(), taps.weights.end()) += kOne - rounded;
  return taps;
}

Interval AxisFilter::inputs(const Interval& outputs) const {
  return outputs.empty() ? Interval{} : hull(support(outputs.begin), support(outputs.end - 1));
}

at::Tensor resample(Raster& source, int64_t height, int64_t width, const Interval& rows,
                    const Interval& cols) {
  if (height == source.height() && width == source.width()) return copy_rows(source, rows, cols);
  const AxisFilter down(source.height(), height), across(source.width(), width);
  const auto row_taps = taps_of(down, rows), col_taps = taps_of(across, cols);
  const Interval source_cols = across.inputs(cols);
  const int64_t line = cols.length() * kChannels;
  std::vector<uint32_t> filtered(line);
  // At most 2^16 * 255 * 2^8: a sum stays below 2^32, also with the half that rounds it.
  std::vector<uint32_t> sums(rows.length() * line);
  size_t first = 0;  // output rows above it are complete
  source.scan(down.inputs(rows), source_cols, [&](int64_t row, const uint8_t* rgb) {
    filter_row(rgb, source_cols.begin, col_taps, filtered);
    const auto behind = [&](const AxisFilter::Taps& taps) {
      return taps.first + static_cast<int64_t>(taps.weights.size()) <= row;
    };
    while (first < row_taps.size() && behind(row_taps[first])) ++first;
    for (size_t y = first; y < row_taps.size() && row_taps[y].first <= row; ++y) {
      const uint32_t weight = row_taps[y].weights[row - row_taps[y].first];
      uint32_t* sum = sums.data() + y * line;
      for (int64_t x = 0; x < line; ++x) sum[x] += weight * filtered[x];
    }
  });
  at::Tensor pixels = at::empty({rows.length(), cols.length(), kChannels}, at::kByte);
  std::transform(sums.begin(), sums.end(), pixels.data_ptr<uint8_t>(),
                 [](uint32_t sum) { return static_cast<uint8_t>((sum + (1U << 23)) >> 24); });
  return pixels;
}

}  // namespace mpi4dl
