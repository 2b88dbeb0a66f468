#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mpi4dl {

/// Says how well a classifier knows labelled images.
struct Metrics {
  int64_t images = 0;
  double loss = 0;  ///< mean cross-entropy
  double accuracy = 0;
  std::vector<std::vector<int64_t>> confusion;  ///< images by [label][predicted class]
  /// Holds the area under the ROC curve of each class against the rest; none for a class that no
  /// image or every image has.
  std::vector<std::optional<double>> auc;
  /// Returns the mean over the classes that have one.
  std::optional<double> mean_auc() const;
};

/// Returns the class probabilities, row by row: the softmax of logits, images x classes.
std::vector<double> probabilities(std::span<const double> logits, int64_t classes);

/// Returns the class with the largest logit; the first of them where several are equal.
int64_t predicted_class(std::span<const double> logits);

/// Compares logits, images x classes, with one label an image; images with a label below 0 are left
/// out.
Metrics measure(std::span<const double> logits, std::span<const int64_t> labels, int64_t classes);

/// Returns "loss 0.51234  accuracy 71.20 %  AUC 0.8812  40 images".
std::string describe(const Metrics& metrics);

/// Returns the share of pairs (an image of the class, an image of another) in which the first has
/// the higher score; ties count half. None where there is no such pair. Sorts: O(n log n).
std::optional<double> area_under_curve(std::span<const double> scores,
                                       const std::vector<bool>& of_class);

}  // namespace mpi4dl
