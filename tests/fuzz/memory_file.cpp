#include "memory_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace mpi4dl::fuzz {

MemoryFile::MemoryFile(const std::string& bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
  const auto size = static_cast<ssize_t>(bytes.size());
  if (descriptor_ < 0 || write(descriptor_, bytes.data(), bytes.size()) != size) std::abort();
}

MemoryFile::~MemoryFile() {
  close(descriptor_);
}

}  // namespace mpi4dl::fuzz
