#include "data/augmentation.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"

namespace mpi4dl {
namespace {

constexpr double kDefaultJitter = 0.2;
constexpr int64_t kDefaultShift = 4;

/// Draws the random numbers of one sample in one epoch; each decision has its own.
class Draw {
 public:
  explicit Draw(uint64_t key) : key_(key) {}
  double number(std::string_view decision) const {
    return uniform(combine_keys(key_, key_of(decision)), 0);
  }
  bool coin(std::string_view decision) const { return number(decision) < 0.5; }
  /// Returns one of first, ..., last.
  int64_t whole(std::string_view decision, int64_t first, int64_t last) const {
    return first + static_cast<int64_t>(number(decision) * static_cast<double>(last - first + 1));
  }
  /// Returns a factor around 1, at most `spread` away.
  double factor(std::string_view decision, double spread) const {
    return 1 + spread * (2 * number(decision) - 1);
  }

 private:
  uint64_t key_;
};

/// Says where an axis of the result comes from.
struct AxisMap {
  int64_t length = 0;
  int64_t shift = 0;
  bool flipped = false;

  int64_t source(int64_t index) const {
    index += shift;
    if (index < 0) index = -index;
    if (index >= length) index = 2 * (length - 1) - index;
    return flipped ? length - 1 - index : index;
  }

  std::vector<int64_t> sources(const Interval& result) const {
    std::vector<int64_t> all;
    for (int64_t i = result.begin; i < result.end; ++i) all.push_back(source(i));
    return all;
  }
};

struct Arrangement {
  bool turned = false;    ///< rows and columns are exchanged
  AxisMap rows, columns;  ///< of the source
};

Arrangement arrange(const AugmentationOptions& options, const Shape& image, const Draw& draw) {
  const int64_t quarters = options.turn ? draw.whole("turn", 0, 3) : 0;
  Arrangement arrangement{.turned = quarters % 2 == 1,
                          .rows = {.length = image.space[image.space.size() - 2]},
                          .columns = {.length = image.space.back()}};
  arrangement.rows.flipped = quarters >= 2;
  arrangement.columns.flipped = quarters == 1 || quarters == 2;
  if (options.flip_vertically && draw.coin("vertical flip"))
    arrangement.rows.flipped = !arrangement.rows.flipped;
  if (options.flip_horizontally && draw.coin("horizontal flip"))
    arrangement.columns.flipped = !arrangement.columns.flipped;
  arrangement.rows.shift = draw.whole("rows", -options.shift, options.shift);
  arrangement.columns.shift = draw.whole("columns", -options.shift, options.shift);
  return arrangement;
}

/// Returns the smallest interval that holds them.
Interval around(const std::vector<int64_t>& indices) {
  const auto [first, last] = std::ranges::minmax(indices);
  return {first, last + 1};
}

at::Tensor take(const at::Tensor& pixels, int64_t axis, const std::vector<int64_t>& indices) {
  const int64_t first = around(indices).begin;
  bool in_place = true;
  for (size_t i = 0; i < indices.size(); ++i)
    in_place = in_place && indices[i] == first + static_cast<int64_t>(i);
  if (in_place) return pixels;
  return pixels.index_select(axis, at::tensor(indices, at::kLong) - first);
}

/// Returns the box of the result out of what it needs of the source, with all channels.
at::Tensor read_arranged(const Dataset& data, int64_t sample, const Arrangement& arrangement,
                         const Shape& image, const Box& box) {
  const int row = box.axes() - 2, column = box.axes() - 1;
  const auto rows = arrangement.rows.sources(box[arrangement.turned ? column : row]);
  const auto columns = arrangement.columns.sources(box[arrangement.turned ? row : column]);
  Box source = box;
  source[1] = {0, image.channels};
  source[row] = around(rows);
  source[column] = around(columns);
  at::Tensor pixels = data.read(sample, source);
  pixels = take(take(pixels, -2, rows), -1, columns);
  return arrangement.turned ? pixels.transpose(-2, -1) : pixels;
}

/// Changes brightness, contrast and saturation, in this order, about the middle of the range of
/// values: every pixel by itself. It does one operation at a time, each rounded once, so that a
/// pixel does not depend on its neighbours in a vector register.
at::Tensor jittered(const at::Tensor& pixels, double spread, const Draw& draw) {
  const double brightness = spread * (2 * draw.number("brightness") - 1);
  at::Tensor result = pixels.add(brightness);
  result.mul_(draw.factor("contrast", spread));
  if (result.size(0) != 3) return result;
  const double saturation = draw.factor("saturation", spread);
  at::Tensor grey = result[0].mul(0.299);
  grey.add_(result[1].mul(0.587)).add_(result[2].mul(0.114));
  return result.mul_(saturation).add_(grey.mul_(1 - saturation).unsqueeze(0));
}

template <typename T>
T number_of(const std::string& item, const std::string& text, T least, T most) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  validate(
      error == std::errc() && end == text.data() + text.size() && number >= least && number <= most,
      "{} of the augmentation must be a number between {} and {}, not '{}'", item, least, most,
      text);
  return number;
}

}  // namespace

bool AugmentationOptions::any() const {
  return flip_horizontally || flip_vertically || turn || jitter > 0 || shift > 0;
}

AugmentationOptions parse_augmentation(const std::string& text) {
  AugmentationOptions options;
  if (text == "none") return options;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const size_t equals = item.find('=');
    const std::string name = item.substr(0, equals);
    const bool plain = equals == std::string::npos;
    const std::string value = plain ? "" : item.substr(equals + 1);
    const bool known = name == "jitter" || name == "crop" ||
                       (plain && (name == "hflip" || name == "vflip" || name == "turn"));
    validate(known,
             "'{}' is an unknown augmentation; use some of hflip,vflip,turn,jitter=0.2,crop=4",
             item);
    if (name == "hflip") options.flip_horizontally = true;
    if (name == "vflip") options.flip_vertically = true;
    if (name == "turn") options.turn = true;
    if (name == "jitter")
      options.jitter = plain ? kDefaultJitter : number_of("jitter", value, 0.0, 1.0);
    if (name == "crop")
      options.shift =
          plain ? kDefaultShift : number_of<int64_t>("crop", value, 1, int64_t{1} << 20);
  }
  validate(
      options.any(),
      "augmentation '{}' changes nothing; use some of hflip,vflip,turn,jitter=0.2,crop=4, or none",
      text);
  return options;
}

Augmentation::Augmentation(const AugmentationOptions& options, Shape image, uint64_t seed)
    : options_(options),
      image_(std::move(image)),
      key_(combine_keys(seed, key_of("augmentation"))) {
  const int64_t height = image_.space[image_.space.size() - 2], width = image_.space.back();
  validate(
      !options.turn || height == width,
      "augmentation turn needs square images, not {}x{}; leave turn out or change the image size",
      height, width);
  validate(options.shift < std::min(height, width),
           "augmentation crop={} moves images of {}x{} away; use less than {}", options.shift,
           height, width, std::min(height, width));
}

at::Tensor Augmentation::read(const Dataset& data, int64_t epoch, int64_t sample,
                              const Box& box) const {
  if (!options_.any() || box.empty()) return data.read(sample, box);
  const Draw draw(combine_keys(combine_keys(key_, static_cast<uint64_t>(epoch)),
                               static_cast<uint64_t>(sample)));
  at::Tensor pixels = read_arranged(data, sample, arrange(options_, image_, draw), image_, box);
  if (options_.jitter > 0) pixels = jittered(pixels, options_.jitter, draw);
  return pixels.slice(0, box[1].begin, box[1].end);
}

}  // namespace mpi4dl
