#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace mpi4dl {

/// Returns the path of one of the small files of tests/data/import, which CMake has unpacked.
std::string import_file(const std::string& name);

/// Returns the net that a file is about: what comes before the first dot.
std::string net_of(const std::string& file);

/// Lists the small files that are wanted, sorted.
std::vector<std::string> import_files(const std::function<bool(const std::string&)>& wanted);

/// Names a test of a file, in which a dot may not be.
struct NameOfFile {
  std::string operator()(const ::testing::TestParamInfo<std::string>& info) const;
};

}  // namespace mpi4dl
