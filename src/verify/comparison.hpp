#pragma once

#include <string>

#include "verify/verification.hpp"

namespace mpi4dl {

/// Says how far a result is from the expected one: the largest relative error over loss, output,
/// every parameter, its gradient, and every batch norm's statistics, and where it is.
struct Comparison {
  double max_relative_error = 0;
  std::string worst;  ///< empty where nothing differs
};

/// Compares by norms of differences, relative to the expected tensor's norm; for a gradient, to the
/// larger of its norm and 1e-6 of the whole gradient's. A gradient below 1e-9 of the whole is what
/// rounding leaves of a true zero, such as that of a bias that feeds a batch norm, and is compared
/// with the whole. Parameters, which such gradients have changed, likewise. A running mean below
/// 1e-9 of the standard deviations is compared with these.
Comparison compare(const StepResult& result, const StepResult& expected);

}  // namespace mpi4dl
