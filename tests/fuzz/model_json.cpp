// The JSON in a file of torch.export: an archive is made around it whose checksums are right.
#include "base/error.hpp"
#include "import/small_archive.hpp"
#include "import_everything.hpp"
#include "json_mutation.hpp"

namespace mpi4dl::fuzz {
namespace {

constexpr int kStorages = 64;
constexpr size_t kStorageBytes = 16384;

/// Splits at zeros, which occur in no JSON: the model, what describes weights, what describes
/// constants.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char letter : text)
    if (letter == '\0')
      parts.emplace_back();
    else
      parts.back() += letter;
  parts.resize(3, R"({"config": {}})");
  return parts;
}

std::string archive_of(const std::string& text) {
  const std::vector<std::string> parts = split(text);
  std::vector<testing::ArchiveEntry> entries{
      {"net/models/model.json", parts[0]},
      {"net/data/weights/model_weights_config.json", parts[1]},
      {"net/data/constants/model_constants_config.json", parts[2]}};
  for (int i = 0; i < kStorages; ++i)
    for (const char* kind : {"weight", "tensor"}) {
      const std::string name = fmt::format("{}_{}", kind, i),
                        folder = kind[0] == 'w' ? "weights" : "constants";
      if (text.find(name) != std::string::npos)
        entries.push_back(
            {fmt::format("net/data/{}/{}", folder, name), std::string(kStorageBytes, '\1')});
    }
  return testing::archive_bytes(entries);
}

}  // namespace
}  // namespace mpi4dl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t bytes) {
  mpi4dl::fuzz::import_everything(
      mpi4dl::fuzz::archive_of({reinterpret_cast<const char*>(data), bytes}));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(unsigned char* data, size_t bytes, size_t most,
                                          unsigned int seed) {
  return mpi4dl::fuzz::mutate_json_texts(data, bytes, most, seed);
}
