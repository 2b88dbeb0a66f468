#include "data/view.hpp"

#include <ATen/ATen.h>

#include <array>

#include "base/error.hpp"
#include "data/resample.hpp"

namespace mpi4dl {
namespace {

constexpr int kWhite = 255;

Interval moved(const Interval& interval, int64_t by) {
  return {interval.begin + by, interval.end + by};
}

Interval reversed(const Interval& interval, int64_t length) {
  return {length - interval.end, length - interval.begin};
}

/// Returns these rows and columns of the image as it is shown, at this size.
at::Tensor show_inside(Raster& image, const Orientation& orientation, const Extents& shown,
                       const Interval& rows, const Interval& cols) {
  const Extents stored = orientation.shown(shown);
  Interval stored_rows = orientation.swapped ? cols : rows;
  Interval stored_cols = orientation.swapped ? rows : cols;
  if (orientation.rows_reversed) stored_rows = reversed(stored_rows, stored[0]);
  if (orientation.cols_reversed) stored_cols = reversed(stored_cols, stored[1]);
  at::Tensor pixels = resample(image, stored[0], stored[1], stored_rows, stored_cols);
  if (orientation.rows_reversed) pixels = pixels.flip(0);
  if (orientation.cols_reversed) pixels = pixels.flip(1);
  return orientation.swapped ? pixels.transpose(0, 1) : pixels;
}

}  // namespace

Placement place(const Extents& image, const Extents& canvas, Fit fit, const std::string& name) {
  if (fit == Fit::resize) return {canvas[0], canvas[1], 0, 0};
  const bool larger = image[0] > canvas[0] || image[1] > canvas[1];
  const bool smaller = image[0] < canvas[0] || image[1] < canvas[1];
  const auto refuse = [&](const char* advice) {
    throw Error(fmt::format("{} has {}x{} pixels, not the image size of {}x{}; {}", name, image[0],
                            image[1], canvas[0], canvas[1], advice));
  };
  if (fit == Fit::exact && (larger || smaller)) refuse("use crop, pad, crop-pad or resize");
  if (fit == Fit::crop && smaller) refuse("crop needs larger images; use crop-pad or resize");
  if (fit == Fit::pad && larger) refuse("pad needs smaller images; use crop-pad or resize");
  return {image[0], image[1], (canvas[0] - image[0]) / 2, (canvas[1] - image[1]) / 2};
}

at::Tensor show(Raster& image, const Orientation& orientation, const Placement& placement,
                const Interval& rows, const Interval& cols) {
  const Interval rows_inside = intersect(moved(rows, -placement.top), {0, placement.height});
  const Interval cols_inside = intersect(moved(cols, -placement.left), {0, placement.width});
  at::Tensor canvas = at::full({rows.length(), cols.length(), 3}, kWhite, at::kByte);
  if (rows_inside.empty() || cols_inside.empty()) return canvas;
  const at::Tensor pixels = show_inside(image, orientation, {placement.height, placement.width},
                                        rows_inside, cols_inside);
  canvas.narrow(0, rows_inside.begin + placement.top - rows.begin, rows_inside.length())
      .narrow(1, cols_inside.begin + placement.left - cols.begin, cols_inside.length())
      .copy_(pixels);
  return canvas;
}

at::Tensor normalised(const at::Tensor& bytes, const Interval& channels) {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (int i = 0; i < 256; ++i) values[i] = (static_cast<float>(i) / 255.0F - 0.5F) / 0.5F;
    return values;
  }();
  const int64_t pixels = bytes.size(0) * bytes.size(1);
  at::Tensor floats = at::empty({channels.length(), bytes.size(0), bytes.size(1)}, at::kFloat);
  const auto* in = bytes.data_ptr<uint8_t>();
  auto* out = floats.data_ptr<float>();
  for (int64_t c = channels.begin; c < channels.end; ++c)
    for (int64_t i = 0; i < pixels; ++i) *out++ = table[in[3 * i + c]];
  return floats;
}

}  // namespace mpi4dl
