#include "import/table.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "import/liveness.hpp"

namespace mpi4dl {
namespace {

std::map<std::string_view, const TableRow*> all_rows() {
  std::map<std::string_view, const TableRow*> rows;
  for (const auto family : {window_rows, norm_rows, pointwise_rows, elementwise_rows, view_rows,
                            channel_rows, resizing_rows, number_rows, noise_rows, refused_rows})
    for (const TableRow& row : family()) rows.emplace(row.target, &row);
  return rows;
}

}  // namespace

const TableRow* find_row(const Call& call) {
  static const std::map<std::string_view, const TableRow*> rows = all_rows();
  std::string target = call.target;
  if (in_place(call)) target.pop_back();
  const auto found = rows.find(target);
  return found == rows.end() ? nullptr : found->second;
}

const TableRow* find_weight_row(const Call& call) {
  const auto rows = weight_rows();
  const auto found = std::ranges::find(rows, call.target, &TableRow::target);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace mpi4dl
