#pragma once

#include <string>

#include "data/image_list.hpp"

namespace mpi4dl {

/// Lists the images that a CSV file names: a column `path` (as seen from the file) and, if known,
/// `label` (names or numbers of classes), `split` (train or val) and `patient`. It may have further
/// columns. Throws UsageError, naming the line, where something is wrong.
ImageList list_csv(const std::string& path);

}  // namespace mpi4dl
