#include "train/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mpi4dl {

double LearningRate::at(int64_t step) const {
  if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const int64_t after = step - warmup;
  const int64_t falls = after / every;
  if (kind == Kind::step) return base * std::pow(factor, static_cast<double>(falls));
  if (kind == Kind::cosine) {
    const auto length = static_cast<double>(std::max<int64_t>(1, total - warmup));
    const double progress = std::min(1.0, static_cast<double>(after) / length);
    return base * (1 + std::cos(std::numbers::pi * progress)) / 2;
  }
  return base;
}

}  // namespace mpi4dl
