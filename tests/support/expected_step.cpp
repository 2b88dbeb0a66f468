#include "support/expected_step.hpp"

#include <gtest/gtest.h>

#include "support/import_files.hpp"
#include "support/imported_step.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {

void expect_step_of_pytorch(const std::string& file, const std::string& values) {
  constexpr double kTolerance = 1e-9;
  const SafetensorsFile expected(import_file(values));
  const ImportedModel model = import_model(import_file(file), {.image = image_of(expected)});
  const Grid grid = make_grid("square", world().size());
  const Comparison found = compare_with_pytorch(model, grid, expected, world());
  EXPECT_LE(found.max_relative_error, kTolerance) << found.worst;
}

}  // namespace mpi4dl::testing
