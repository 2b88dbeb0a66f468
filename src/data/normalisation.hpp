#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace mpi4dl {

/// Says what a model expects of the channels of an image: (x - mean) / deviation, where x goes from
/// 0 (black) to 1.
///
/// Data sets give values from -1 to 1, which are those of mean and deviation 0.5. What else is
/// wanted is made of them last, after augmentation, which counts on that range.
struct Normalisation {
  std::vector<double> mean = {0.5}, deviation = {0.5};  ///< one for all channels, or for each

  bool operator==(const Normalisation&) const = default;
  /// Throws UsageError where images have another number of channels.
  void check_channels(int64_t channels) const;
  /// Returns values of a data set as the model expects them; `channels`: which ones they are. Every
  /// pixel is computed by itself.
  at::Tensor apply(const at::Tensor& pixels, const Interval& channels) const;
};

/// Reads "none" (0 to 1), "imagenet", or "MEAN,STD", each one number or one for each channel:
/// "0.485:0.456:0.406,0.229:0.224:0.225". Throws UsageError where it is something else.
Normalisation parse_normalisation(const std::string& text);
/// Returns the shortest text that parse_normalisation reads as the same.
std::string to_string(const Normalisation& normalisation);

/// Returns the data set as the model expects it; null stays null.
std::shared_ptr<const Dataset> normalised_images(std::shared_ptr<const Dataset> data,
                                                 const Normalisation& normalisation);

}  // namespace mpi4dl
