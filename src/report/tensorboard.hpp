#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/append_file.hpp"

namespace mpi4dl {

/// Writes scalars over steps for TensorBoard: a file of records, each an Event message in the
/// encoding of protocol buffers, of which this writes the few fields that scalars need.
///
///     record: length (8 bytes)  masked CRC of it (4)  event  masked CRC of it (4)
///     event:  1 wall time (double)  2 step (varint)  3 file version  5 summary  7 session log
///     summary: 1 value, repeated: 1 tag, 2 value (float)
class TensorBoardFile {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;

  /// Makes a new file in `folder`. Readers forget what earlier files of the folder say of steps
  /// from `first_step` on. Throws Error where it cannot be written.
  TensorBoardFile(const std::string& folder, int64_t first_step);

  void add(int64_t step, const Scalars& scalars);

 private:
  void write(int64_t step, const std::string& what);

  AppendFile file_;
};

/// Returns the Castagnoli checksum.
uint32_t crc32c(std::string_view bytes);

}  // namespace mpi4dl
