#pragma once

#include <string>

namespace mpi4dl {

/// Calls a file NAME.partial until it is complete, so that an older one of its name is replaced as
/// a whole or not at all. What is not published is removed, also where a signal ends the process. A
/// device, such as /dev/stdout, is written to under its own name.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string name);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const std::string& name() const { return name_; }
  /// Returns where to write it.
  const std::string& partial() const { return partial_; }
  /// Gives the complete file its name; throws Error where that fails.
  void publish();

 private:
  std::string name_, partial_;
  int entry_ = -1;  // of the table that a signal handler reads
  bool published_ = false;
};

/// Removes whatever this process has not published. A signal handler may call it.
void remove_unfinished_files() noexcept;

}  // namespace mpi4dl
