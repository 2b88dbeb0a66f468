#include "task/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mpi4dl {
namespace {

std::span<const double> row(std::span<const double> values, size_t image, int64_t classes) {
  return values.subspan(image * static_cast<size_t>(classes), static_cast<size_t>(classes));
}

/// Returns log(sum(exp(logits))), without overflow.
double log_sum(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

std::vector<double> column(const std::vector<double>& values, int64_t classes, int64_t which) {
  std::vector<double> chosen;
  for (size_t i = static_cast<size_t>(which); i < values.size(); i += static_cast<size_t>(classes))
    chosen.push_back(values[i]);
  return chosen;
}

}  // namespace

std::optional<double> Metrics::mean_auc() const {
  double sum = 0;
  int64_t count = 0;
  for (const std::optional<double>& area : auc)
    if (area) sum += *area, ++count;
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::vector<double> probabilities(std::span<const double> logits, int64_t classes) {
  std::vector<double> result(logits.begin(), logits.end());
  for (size_t image = 0; image * static_cast<size_t>(classes) < logits.size(); ++image) {
    const double scale = log_sum(row(logits, image, classes));
    const auto first = result.begin() + static_cast<std::ptrdiff_t>(image) * classes;
    std::transform(first, first + classes, first, [&](double x) { return std::exp(x - scale); });
  }
  return result;
}

int64_t predicted_class(std::span<const double> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

Metrics measure(std::span<const double> logits, std::span<const int64_t> labels, int64_t classes) {
  Metrics metrics;
  metrics.confusion.assign(classes, std::vector<int64_t>(classes, 0));
  std::vector<double> known;  // logits of the images that have a label
  std::vector<int64_t> label;
  for (size_t image = 0; image < labels.size(); ++image) {
    if (labels[image] < 0) continue;
    const auto scores = row(logits, image, classes);
    known.insert(known.end(), scores.begin(), scores.end());
    label.push_back(labels[image]);
    metrics.loss += log_sum(scores) - scores[label.back()];
    ++metrics.confusion[label.back()][predicted_class(scores)];
  }
  metrics.images = static_cast<int64_t>(label.size());
  if (metrics.images == 0) return metrics;
  int64_t correct = 0;
  for (int64_t i = 0; i < classes; ++i) correct += metrics.confusion[i][i];
  const auto count = static_cast<double>(metrics.images);
  metrics.loss /= count;
  metrics.accuracy = static_cast<double>(correct) / count;
  const std::vector<double> shares = probabilities(known, classes);
  for (int64_t i = 0; i < classes; ++i) {
    std::vector<bool> of_class(label.size());
    std::transform(label.begin(), label.end(), of_class.begin(), [i](int64_t l) { return l == i; });
    metrics.auc.push_back(area_under_curve(column(shares, classes, i), of_class));
  }
  return metrics;
}

std::string describe(const Metrics& metrics) {
  std::string text =
      fmt::format("loss {:.5f}  accuracy {:.2f} %", metrics.loss, 100.0 * metrics.accuracy);
  if (const auto area = metrics.mean_auc()) text += fmt::format("  AUC {:.4f}", *area);
  return text + fmt::format("  {} images", metrics.images);
}

/// Counts in integers: exact.
std::optional<double> area_under_curve(std::span<const double> scores,
                                       const std::vector<bool>& of_class) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  int64_t inside = 0, outside = 0;  // images with a lower score
  int64_t won_twice = 0;            // pairs that the class wins, twice; ties once
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    int64_t tied_inside = 0, tied_outside = 0;
    for (; end < order.size() && scores[order[end]] == scores[order[begin]]; ++end)
      ++(of_class[order[end]] ? tied_inside : tied_outside);
    won_twice += tied_inside * (2 * outside + tied_outside);
    inside += tied_inside;
    outside += tied_outside;
  }
  if (inside == 0 || outside == 0) return std::nullopt;
  return static_cast<double>(won_twice) /
         (2.0 * static_cast<double>(inside) * static_cast<double>(outside));
}

}  // namespace mpi4dl
