#include "geometry/grid.hpp"

#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

std::optional<int> positive_number(std::string_view text) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

/// Reads "3x2" as a grid of 3 rows and 2 columns; nothing where the text has another form.
std::optional<Grid> explicit_grid(std::string_view text) {
  const size_t cross = text.find('x');
  if (cross == std::string_view::npos) return std::nullopt;
  const auto rows = positive_number(text.substr(0, cross));
  const auto cols = positive_number(text.substr(cross + 1));
  if (!rows || !cols) return std::nullopt;
  return Grid{.rows = *rows, .cols = *cols};
}

Grid most_square(int parts) {
  int rows = 1;
  for (int divisor = 1; divisor * divisor <= parts; ++divisor)
    if (parts % divisor == 0) rows = divisor;
  return {.rows = rows, .cols = parts / rows};
}

}  // namespace

Place Grid::place(int rank) const {
  return {.batch = rank / (rows * cols), .row = rank / cols % rows, .col = rank % cols};
}

int Grid::rank(const Place& place) const {
  return (place.batch * rows + place.row) * cols + place.col;
}

Box Grid::owned(std::span<const int64_t> shape, int rank) const {
  const Place here = place(rank);
  Box box = Box::whole(shape);
  box[0] = part(shape[0], here.batch, batch);
  if (box.axes() < 4) return here.row == 0 && here.col == 0 ? box : Box::none(box.axes());
  box[box.axes() - 2] = part(shape[box.axes() - 2], here.row, rows);
  box[box.axes() - 1] = part(shape[box.axes() - 1], here.col, cols);
  return box;
}

std::string to_string(const Grid& grid) {
  const std::string tiles = fmt::format("{}x{}", grid.rows, grid.cols);
  return grid.batch == 1 ? tiles : fmt::format("{}x{}", grid.batch, tiles);
}

Grid make_grid(const std::string& method, int parts) {
  validate(parts >= 1, "an image is cut into at least 1 part, not {}", parts);
  if (method == "square") return most_square(parts);
  if (method == "vertical") return {.cols = parts};
  if (method == "horizontal") return {.rows = parts};
  const std::optional<Grid> grid = explicit_grid(method);
  validate(
      grid.has_value(),
      "unknown slice method '{}'; use square, vertical, horizontal or rows x columns such as 2x3",
      method);
  validate(grid->size() == parts,
           "slice method {} makes {} tiles, but {} spatial parts were asked for", method,
           grid->size(), parts);
  return *grid;
}

}  // namespace mpi4dl
