#include "support/import_files.hpp"

#include <algorithm>
#include <filesystem>

namespace mpi4dl {

std::string import_file(const std::string& name) {
  return std::string(MPI4DL_IMPORT_FILES) + '/' + name;
}

std::string net_of(const std::string& file) {
  return file.substr(0, file.find('.'));
}

std::vector<std::string> import_files(const std::function<bool(const std::string&)>& wanted) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(import_file("")))
    if (const std::string name = entry.path().filename(); wanted(name)) found.push_back(name);
  std::sort(found.begin(), found.end());
  return found;
}

std::string NameOfFile::operator()(const ::testing::TestParamInfo<std::string>& info) const {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

}  // namespace mpi4dl
