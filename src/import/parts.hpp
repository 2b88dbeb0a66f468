#pragma once

#include <optional>
#include <vector>

#include "import/translation.hpp"

namespace mpi4dl {

/// Is more parts of a value than a network has branches or groups that it takes apart.
constexpr int64_t kMostParts = 10'000;

/// Returns the parts of a value along an axis that counts runs of channels, such as branches that
/// were stacked; nothing where the axis is something else.
std::vector<View> parts_along(Translation& call, const View& view, size_t axis);

/// Adds the parts of a value along such an axis, which is gone or one long afterwards; nothing
/// where the axis is something else.
std::optional<View> sum_along(Translation& call, const View& view, size_t axis, bool keep_axis);

/// Puts values one after the other along a new axis, and is the inverse.
View stack_parts(Translation& call, const std::vector<View>& parts, size_t axis);

}  // namespace mpi4dl
