#include "storage/replacement_file.hpp"

#include <filesystem>

namespace mpi4dl {

void ReplacementFile::finish() {
  file_.finish();
  publish_durably(unfinished_);
}

void replace_file(const std::string& path, const std::string& text) {
  ReplacementFile file(path);
  file.write(text);
  file.finish();
}

void publish_durably(UnfinishedFile& file) {
  file.publish();
  sync_folder(std::filesystem::absolute(file.name()).parent_path());
}

}  // namespace mpi4dl
