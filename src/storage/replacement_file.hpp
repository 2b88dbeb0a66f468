#pragma once

#include <string>

#include "storage/durable_file.hpp"

namespace mpi4dl {

/// A file that gets its name once it is complete and on the disk; until then an older one of that
/// name stays as it is. Every failure is an Error that names the file and the reason.
class ReplacementFile {
 public:
  explicit ReplacementFile(std::string path);
  /// Removes what was not finished.
  ~ReplacementFile();
  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;

  void write(const std::string& text) { file_.write(text.data(), text.size()); }
  void finish();

 private:
  std::string path_, partial_;
  DurableFile file_;
  bool finished_ = false;
};

/// A short file in one go.
void replace_file(const std::string& path, const std::string& text);

}  // namespace mpi4dl
