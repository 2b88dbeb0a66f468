// A file of torch.save: any bytes that begin like an archive; others are the pickle in a sound one.
#include <ATen/core/Tensor.h>

#include "base/error.hpp"
#include "import/small_archive.hpp"
#include "memory_file.hpp"
#include "storage/torch_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t bytes) {
  using namespace mpi4dl;
  std::string text(reinterpret_cast<const char*>(data), bytes);
  if (!text.starts_with("PK"))
    text = testing::archive_bytes({{"archive/data.pkl", text},
                                   {"archive/data/0", std::string(4096, '\1')},
                                   {"archive/data/1", std::string(64, '\1')}});
  const fuzz::MemoryFile memory(text);
  try {
    const TorchFile file(memory.path());
    for (const auto& [name, info] : file.tensors()) file.read(name);
  } catch (const Error&) {
  }
  return 0;
}
