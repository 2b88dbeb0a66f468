#pragma once

#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "geometry/grid.hpp"
#include "import/imported_model.hpp"
#include "storage/safetensors.hpp"
#include "verify/comparison.hpp"

namespace mpi4dl::testing {

/// Trains an imported model for the steps that PyTorch has taken in a file of expected values, in
/// float64 and always with its images (trained() of tests/data/import/expected.py), and compares
/// parameters and statistics afterwards. `stages`: grids of ranks that the model is spread over;
/// `optimizer`: sgd or adamw, as expected.py has it set. Collective over the world; the same on all
/// ranks.
Comparison compare_training(const ImportedModel& model, const std::vector<Grid>& stages,
                            const std::string& optimizer, const SafetensorsFile& expected,
                            const Communicator& world);

}  // namespace mpi4dl::testing
