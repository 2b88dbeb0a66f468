#include "report/run_totals.hpp"

#include <algorithm>
#include <numeric>

#include "base/median.hpp"

namespace mpi4dl {
namespace {

template <typename Iterator>
double mean(Iterator first, Iterator last) {
  return first == last ? 0 : std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
}

}  // namespace

void RunTotals::add(const StepRecord& record) {
  if (epoch_.number != record.epoch) epoch_ = {.number = record.epoch};
  epoch_.images += record.images;
  epoch_.correct += record.correct;
  epoch_.loss_sum += record.loss * static_cast<double>(record.images);
  epoch_.seconds += record.seconds;
  speeds_.push_back(record.images_per_second());
  seconds_.push_back(record.seconds);
  resident_bytes_ = std::max(resident_bytes_, record.resident_bytes);
}

std::vector<double> RunTotals::warm_speeds() const {
  return {speeds_.begin() + (speeds_.size() > 1 ? 1 : 0), speeds_.end()};
}

double RunTotals::mean_speed() const {
  const std::vector<double> warm = warm_speeds();
  return mean(warm.begin(), warm.end());
}

double RunTotals::median_speed() const {
  return median(warm_speeds());
}

double RunTotals::recent_seconds() const {
  constexpr std::ptrdiff_t kRecent = 10;
  const auto count = std::min<std::ptrdiff_t>(kRecent, std::ssize(seconds_));
  return mean(seconds_.end() - count, seconds_.end());
}

}  // namespace mpi4dl
