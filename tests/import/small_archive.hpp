#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl::testing {

/// Is an entry of an archive, with what a hostile one may say of itself.
struct ArchiveEntry {
  std::string name, bytes;
  int64_t said_bytes = -1;          ///< in the directory; -1: what is true
  int64_t said_place = -1;          ///< of its header; -1: what is true
  int method = 0;                   ///< 0: stored
  std::string name_in_header = {};  ///< empty: the same
};

/// Returns the bytes of a zip archive of these entries, none of them compressed.
std::string archive_bytes(const std::vector<ArchiveEntry>& entries);

/// Returns model.json of a model `output = relu(x)` for images of 2x4x4, with other nodes in
/// place of its own where `nodes` is not empty.
std::string model_json(const std::string& nodes = {});

/// Returns an archive with a model.json and no tensors, as PyTorch writes it.
std::string model_archive(const std::string& json);

}  // namespace mpi4dl::testing
