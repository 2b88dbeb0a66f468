#include "report/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string_view>

namespace mpi4dl {
namespace {

constexpr int kBarWidth = 24;

/// Launchers give their ranks a terminal of their own, whatever theirs is: that of the launcher
/// tells, where it runs on this node.
bool shown_on_terminal(std::FILE* out) {
  if (isatty(fileno(out)) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  std::array<char, 64> name{};
  const std::string link = fmt::format("/proc/{}/fd/{}", getppid(), fileno(out));
  if (readlink(link.c_str(), name.data(), name.size() - 1) < 0) return false;
  const std::string_view target = name.data();
  return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty");
}

std::string bar(const StepRecord& record) {
  const auto filled = static_cast<size_t>(kBarWidth * record.step / record.steps);
  return std::string(filled, '#') + std::string(kBarWidth - filled, '.');
}

std::string time_left(const StepRecord& record) {
  const auto left = static_cast<int64_t>(
      std::ceil(static_cast<double>(record.steps - record.step) * record.seconds));
  return fmt::format("{}:{:02}", left / 60, left % 60);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Progress::Progress(std::FILE* out) : out_(out), terminal_(shown_on_terminal(out)) {}

void Progress::step(const StepRecord& record) {
  epoch_.push_back(record);
  speeds_.push_back(record.images_per_second());
  if (terminal_) {
    fmt::print(out_, "\r\033[Kepoch {}/{} [{}] {}/{}  loss {:.4f}  {:.2f} images per sec  {} left",
               record.epoch, record.epochs, bar(record), record.step, record.steps, record.loss,
               record.images_per_second(), time_left(record));
  } else {
    fmt::print(out_, "epoch {:>3}  step {:>5}/{}  loss {:>9.5f}  {:>9.2f} images per sec\n",
               record.epoch, record.step, record.steps, record.loss, record.images_per_second());
  }
  std::fflush(out_);
}

void Progress::end_epoch() {
  if (epoch_.empty()) return;
  double loss = 0, seconds = 0;
  int64_t correct = 0, images = 0;
  for (const StepRecord& step : epoch_) {
    loss += step.loss * static_cast<double>(step.images);
    seconds += step.seconds;
    correct += step.correct;
    images += step.images;
  }
  if (terminal_) fmt::print(out_, "\r\033[K");
  fmt::print(out_, "epoch {:>3}  loss {:.5f}  accuracy {:.2f} %  {} images in {:.1f} s\n",
             epoch_[0].epoch, loss / static_cast<double>(images),
             100.0 * static_cast<double>(correct) / static_cast<double>(images), images, seconds);
  std::fflush(out_);
  epoch_.clear();
}

void Progress::end_run() {
  std::vector<double> warm = speeds_;
  if (warm.size() > 1) warm.erase(warm.begin());
  if (warm.empty()) return;
  fmt::print(out_, "images per sec: mean {:.2f}, median {:.2f}{}\n", mean(warm), median(warm),
             speeds_.size() > 1 ? " (without the first step)" : "");
  std::fflush(out_);
}

}  // namespace mpi4dl
