#pragma once

#include <string>

#include "train/step.hpp"

namespace mpi4dl {

/// How far a result is from the expected one: the largest relative error over the output, every
/// parameter's gradient and every batch norm's statistics, and where it is.
struct Comparison {
  double max_relative_error = 0;
  std::string worst = "nothing";
};

/// Errors are norms of differences, relative to the expected tensor's norm; for a gradient, to the
/// larger of its norm and 1e-6 of the whole gradient's (the true gradient of a bias that feeds a
/// batch norm is zero).
Comparison compare(const StepResult& result, const StepResult& expected);

}  // namespace mpi4dl
