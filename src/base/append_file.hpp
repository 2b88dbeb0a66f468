#pragma once

#include <string>
#include <string_view>

namespace mpi4dl {

/// Grows a file by whole records, each of which is with the system before the next one. Every
/// failure is an Error that names the file and the reason, and leaves no part of its record.
class AppendFile {
 public:
  enum class Start { empty, end };

  /// Makes the file where there is none.
  AppendFile(std::string path, Start start);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view record);

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  int descriptor_;
};

}  // namespace mpi4dl
