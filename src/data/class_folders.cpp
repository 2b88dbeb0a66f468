#include "data/class_folders.hpp"

#include <system_error>

#include "base/error.hpp"

namespace mpi4dl {

void make_class_folders(const std::string& out, const std::vector<std::string>& classes) {
  check_new_folder(out);
  for (const char* part : {"train", "val"})
    for (const std::string& name : classes) make_folder(class_folder(out, part, name));
}

std::filesystem::path class_folder(const std::string& out, const std::string& part,
                                   const std::string& name) {
  return std::filesystem::path(out) / part / name;
}

void check_new_folder(const std::string& out) {
  std::error_code failure;
  validate(!std::filesystem::exists(out) || std::filesystem::is_empty(out, failure),
           "'{}' is there already and not an empty folder", out);
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  validate(!failure, "cannot make the folder {}: {}", folder.string(), failure.message());
}

}  // namespace mpi4dl
