// A file of torch.export: any bytes.
#include "import_everything.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t bytes) {
  mpi4dl::fuzz::import_everything({reinterpret_cast<const char*>(data), bytes});
  return 0;
}
