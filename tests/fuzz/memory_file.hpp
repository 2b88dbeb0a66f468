#pragma once

#include <string>

namespace mpi4dl::fuzz {

/// Is a file that lies in memory, for readers that take a path. It is gone with the object.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace mpi4dl::fuzz
