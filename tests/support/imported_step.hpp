#pragma once

#include "comm/communicator.hpp"
#include "geometry/grid.hpp"
#include "import/imported_model.hpp"
#include "storage/safetensors.hpp"
#include "verify/comparison.hpp"

namespace mpi4dl::testing {

/// Returns height and width (or depth, height and width) of the images in a file of expected
/// values.
Extents image_of(const SafetensorsFile& expected);

/// Finds the name by which a file of expected values has a tensor of a model: the prefix, and its
/// own name or one that its state_dict has. Null where it has none.
const std::string* find_expected(const ImportedModel& model, const SafetensorsFile& expected,
                                 const std::string& prefix, const std::string& name);

/// Takes a training step of an imported model on the tiles of a grid, in float64 and without a
/// change of parameters, with the images and labels of a file that PyTorch's values are in (see
/// tests/data/import/README.md), and compares with these. Gradients are compared where the file has
/// any. Collective over the world, which has a rank for each tile.
Comparison compare_with_pytorch(const ImportedModel& model, const Grid& grid,
                                const SafetensorsFile& expected, const Communicator& world);

}  // namespace mpi4dl::testing
