#include "comm/node/resident_bytes.hpp"

#include <fstream>
#include <string>

#include "comm/context.hpp"
#include "comm/node/shared_memory.hpp"

namespace mpi4dl {

int64_t resident_bytes(const CommContext& context) {
  constexpr int64_t kKilobyte = 1024;
  int64_t bytes = context.shared_memory ? context.shared_memory->reserved_bytes() : 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:") || line.starts_with("RssFile:"))
      bytes += kKilobyte * std::stoll(line.substr(line.find(':') + 1));
  return bytes;
}

}  // namespace mpi4dl
