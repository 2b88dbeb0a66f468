#include "storage/replacement_file.hpp"

#include <filesystem>

#include "base/error.hpp"

namespace mpi4dl {

ReplacementFile::ReplacementFile(std::string path)
    : path_(std::move(path)), partial_(path_ + ".partial"), file_(partial_) {}

ReplacementFile::~ReplacementFile() {
  std::error_code ignored;
  if (!finished_) std::filesystem::remove(partial_, ignored);
}

void ReplacementFile::finish() {
  file_.finish();
  std::error_code failure;
  std::filesystem::rename(partial_, path_, failure);
  ensure(!failure, "cannot write '{}': {}", path_, failure.message());
  finished_ = true;
  sync_folder(std::filesystem::absolute(path_).parent_path());
}

void replace_file(const std::string& path, const std::string& text) {
  ReplacementFile file(path);
  file.write(text);
  file.finish();
}

}  // namespace mpi4dl
