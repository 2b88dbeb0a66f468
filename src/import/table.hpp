#pragma once

#include <span>
#include <string_view>

#include "import/translation.hpp"

namespace mpi4dl {

/// Says how one of PyTorch's operators becomes part of a graph. An operator in place has the row of
/// the same name without the underscore.
struct TableRow {
  std::string_view target;
  Items (*translate)(Translation& call);
  bool view = false;  ///< its result is, or may be, a view of its first argument
};

// The rows, by family; each stands in the file of its name under import/operators/.
std::span<const TableRow> window_rows();
std::span<const TableRow> norm_rows();
std::span<const TableRow> pointwise_rows();
std::span<const TableRow> elementwise_rows();
std::span<const TableRow> view_rows();
std::span<const TableRow> channel_rows();
std::span<const TableRow> resizing_rows();
std::span<const TableRow> number_rows();
std::span<const TableRow> noise_rows();
std::span<const TableRow> refused_rows();
/// Holds what the same operators do to tensors of the file, where no value of the graph is among
/// their arguments: they compute a weight.
std::span<const TableRow> weight_rows();

/// Returns the row of a call's operator, or null.
const TableRow* find_row(const Call& call);
/// Returns the row of a call on weights alone, or null.
const TableRow* find_weight_row(const Call& call);

}  // namespace mpi4dl
