#include "data/normalisation.hpp"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

const Normalisation kNone{.mean = {0}, .deviation = {1}};
const Normalisation kImagenet{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}};

/// Reads "0.485:0.456:0.406"; returns nothing where it is something else.
std::vector<double> numbers(std::string_view text) {
  std::vector<double> values;
  while (true) {
    const size_t end = std::min(text.find(':'), text.size());
    double value = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + end, value);
    if (error != std::errc() || last != text.data() + end || !std::isfinite(value)) return {};
    values.push_back(value);
    if (end == text.size()) return values;
    text.remove_prefix(end + 1);
  }
}

double of_channel(const std::vector<double>& values, int64_t channel) {
  return values.size() == 1 ? values[0] : values.at(channel);
}

/// Shows another data set as a model expects it.
class NormalisedImages : public Dataset {
 public:
  NormalisedImages(std::shared_ptr<const Dataset> images, Normalisation normalisation)
      : images_(std::move(images)), normalisation_(std::move(normalisation)) {}
  int64_t size() const override { return images_->size(); }
  Extents extent(int64_t sample) const override { return images_->extent(sample); }
  int64_t label(int64_t sample) const override { return images_->label(sample); }
  std::string name(int64_t sample) const override { return images_->name(sample); }
  Problem look_at(int64_t sample) const override { return images_->look_at(sample); }
  at::Tensor read(int64_t sample, const Box& box) const override {
    return normalisation_.apply(images_->read(sample, box), box[1]);
  }

 private:
  std::shared_ptr<const Dataset> images_;
  Normalisation normalisation_;
};

}  // namespace

void Normalisation::check_channels(int64_t channels) const {
  const auto given = std::ssize(mean.size() > 1 ? mean : deviation);
  validate(given == 1 || given == channels,
           "a normalisation of {} is about {} channels, but the model's images have {}",
           to_string(*this), given, channels);
}

at::Tensor Normalisation::apply(const at::Tensor& pixels, const Interval& channels) const {
  if (*this == Normalisation{}) return pixels;
  at::Tensor result = pixels.clone();
  for (int64_t i = 0; i < channels.length(); ++i) {
    const int64_t channel = channels.begin + i;
    // ((v + 1) / 2 - mean) / deviation
    result[i].sub_(2 * of_channel(mean, channel) - 1).div_(2 * of_channel(deviation, channel));
  }
  return result;
}

Normalisation parse_normalisation(const std::string& text) {
  if (text == "none") return kNone;
  if (text == "imagenet") return kImagenet;
  const size_t comma = text.find(',');
  Normalisation result{.mean = numbers(text.substr(0, comma)), .deviation = {}};
  if (comma != std::string::npos) result.deviation = numbers(text.substr(comma + 1));
  const size_t means = result.mean.size(), deviations = result.deviation.size();
  validate(means > 0 && deviations > 0,
           "'{}' is no normalisation; use none, imagenet or MEAN,STD with one number each or one "
           "for each channel, such as 0.485:0.456:0.406,0.229:0.224:0.225",
           text);
  validate(means == 1 || deviations == 1 || means == deviations,
           "the normalisation '{}' has {} means and {} deviations; give as many", text, means,
           deviations);
  for (const double deviation : result.deviation)
    validate(deviation > 0, "a deviation of the normalisation '{}' is not above 0", text);
  return result;
}

std::string to_string(const Normalisation& normalisation) {
  if (normalisation == kNone) return "none";
  if (normalisation == kImagenet) return "imagenet";
  return fmt::format("{},{}", fmt::join(normalisation.mean, ":"),
                     fmt::join(normalisation.deviation, ":"));
}

std::shared_ptr<const Dataset> normalised_images(std::shared_ptr<const Dataset> data,
                                                 const Normalisation& normalisation) {
  if (!data || normalisation == Normalisation{}) return data;
  return std::make_shared<NormalisedImages>(std::move(data), normalisation);
}

}  // namespace mpi4dl
