// A file of tensors: the header alone where it begins like one, and any bytes.
#include "storage/safetensors.hpp"

#include "base/error.hpp"
#include "memory_file.hpp"

namespace {

std::string with_header(const std::string& header) {
  const uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  return bytes + header + std::string(65536, '\1');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t bytes) {
  using namespace mpi4dl;
  const std::string text(reinterpret_cast<const char*>(data), bytes);
  const fuzz::MemoryFile memory(text.starts_with('{') ? with_header(text) : text);
  try {
    const SafetensorsFile file(memory.path());
    for (const auto& [name, info] : file.tensors()) file.read(name);
  } catch (const Error&) {
  }
  return 0;
}
