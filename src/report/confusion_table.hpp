#pragma once

#include <string>
#include <vector>

#include "task/metrics.hpp"

namespace mpi4dl {

/// Returns the confusion matrix with a row for each label, and its AUC. `names`: of all classes;
/// columns are as wide as they need.
std::string confusion_table(const Metrics& metrics, const std::vector<std::string>& names);

}  // namespace mpi4dl
