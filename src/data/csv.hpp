#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

struct CsvRow {
  int64_t line = 0;  ///< where it begins in the file, from 1
  std::vector<std::string> fields;
};

/// Reads the rows of a file of comma-separated values as RFC 4180 describes them: quotes around
/// fields that need them, any ends of lines. Empty lines are left out. Throws UsageError where the
/// file cannot be read or a quote is never closed.
std::vector<CsvRow> read_csv(const std::string& path);

/// Returns a field as it stands in such a file, in quotes where it has to be.
std::string csv_field(const std::string& text);

}  // namespace mpi4dl
