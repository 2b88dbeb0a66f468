#pragma once

#include <string>
#include <utility>

#include "base/unfinished_file.hpp"
#include "storage/durable_file.hpp"

namespace mpi4dl {

/// Gives a file its name once it is complete and on the disk; until then an older one of that name
/// stays as it is. Every failure is an Error that names the file and the reason.
class ReplacementFile {
 public:
  explicit ReplacementFile(std::string path)
      : unfinished_(std::move(path)), file_(unfinished_.partial()) {}

  void write(const std::string& text) { file_.write(text.data(), text.size()); }
  void finish();

 private:
  UnfinishedFile unfinished_;
  DurableFile file_;
};

/// Writes a short file in one go.
void replace_file(const std::string& path, const std::string& text);

/// Publishes a file that is on the disk, and waits until the disk has its name.
void publish_durably(UnfinishedFile& file);

}  // namespace mpi4dl
