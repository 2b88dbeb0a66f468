#include "report/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/units.hpp"

namespace mpi4dl {
namespace {

/// Asks for the launcher's terminal, where it runs on this node: launchers give their ranks one of
/// their own, whatever theirs is.
bool shown_on_terminal(std::FILE* out) {
  if (isatty(fileno(out)) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  std::array<char, 64> name{};
  const std::string link = fmt::format("/proc/{}/fd/{}", getppid(), fileno(out));
  if (readlink(link.c_str(), name.data(), name.size() - 1) < 0) return false;
  const std::string_view target = name.data();
  return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty");
}

size_t columns(std::FILE* out) {
  constexpr size_t kUsual = 80;
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

std::string time_left(const StepRecord& record, double seconds_a_step) {
  const auto steps = static_cast<double>(record.total_steps() - record.total_step());
  const auto left = static_cast<int64_t>(std::ceil(steps * seconds_a_step));
  if (left < 3600) return fmt::format("{}:{:02}", left / 60, left % 60);
  return fmt::format("{}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60);
}

std::string memory(int64_t bytes) {
  const double mib = mebibytes(bytes);
  return mib < 1000 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

}  // namespace

std::string progress_bar(const StepRecord& record, double seconds_a_step, size_t width) {
  constexpr size_t kWidest = 24, kNarrowest = 4;
  const std::string before = fmt::format("epoch {}/{} ", record.epoch, record.epochs);
  const std::string after = fmt::format(
      "{}/{}  loss {:.4f}  {:.2f} images/s  {} left  {}", record.step, record.steps, record.loss,
      record.images_per_second(), time_left(record, seconds_a_step), memory(record.resident_bytes));
  const size_t taken = before.size() + after.size() + std::string_view("[] ").size();
  const size_t cells = std::min(kWidest, width > taken ? width - taken : 0);
  if (cells < kNarrowest) return (before + after).substr(0, width);
  const auto filled = cells * static_cast<size_t>(record.step) / static_cast<size_t>(record.steps);
  return before + '[' + std::string(filled, '#') + std::string(cells - filled, '.') + "] " + after;
}

Progress::Progress(std::FILE* out) : out_(out), terminal_(shown_on_terminal(out)) {}

void Progress::clear_bar() {
  if (terminal_) fmt::print(out_, "\r\033[K");
  since_bar_.reset();
}

void Progress::draw_bar(const StepRecord& record) {
  constexpr double kSecondsShown = 0.1;
  if (since_bar_ && since_bar_->seconds() < kSecondsShown) return;
  clear_bar();
  fmt::print(out_, "{}", progress_bar(record, totals_.recent_seconds(), columns(out_) - 1));
  since_bar_.emplace();
}

void Progress::step(const StepRecord& record) {
  totals_.add(record);
  if (terminal_) {
    draw_bar(record);
  } else {
    fmt::print(out_, "epoch {:>3}  step {:>5}/{}  loss {:>9.5f}  {:>9.2f} images per sec\n",
               record.epoch, record.step, record.steps, record.loss, record.images_per_second());
  }
  std::fflush(out_);
}

void Progress::evaluation(const Metrics& metrics, double seconds) {
  clear_bar();
  fmt::print(out_, "evaluation  {} in {:.1f} s\n", describe(metrics), seconds);
  std::fflush(out_);
}

void Progress::end_epoch() {
  const RunTotals::Epoch& epoch = totals_.epoch();
  if (epoch.images == 0) return;
  clear_bar();
  fmt::print(out_, "epoch {:>3}  loss {:.5f}  accuracy {:.2f} %  {} images in {:.1f} s\n",
             epoch.number, epoch.loss(), 100.0 * epoch.accuracy(), epoch.images, epoch.seconds);
  std::fflush(out_);
}

void Progress::end_run() {
  if (totals_.steps() == 0) return;
  clear_bar();
  fmt::print(out_, "images per sec: mean {:.2f}, median {:.2f}{}\n", totals_.mean_speed(),
             totals_.median_speed(), totals_.steps() > 1 ? " (without the first step)" : "");
  std::fflush(out_);
}

}  // namespace mpi4dl
