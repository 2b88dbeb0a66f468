#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/script.h>

#include <map>
#include <memory>
#include <string>

#include "import/program_tensors.hpp"
#include "storage/zip_archive.hpp"

namespace mpi4dl {

/// Returns the line of libtorch's words that says what is wrong. Throws std::bad_alloc where that
/// is too little memory.
std::string said_by(const std::exception& error);

/// Is the file of a TorchScript module. Values of large tensors are not read, because their place
/// in the file is all that is asked for: whoever trains reads them there.
class ModuleFile {
 public:
  /// Opens a file and reads its directory.
  explicit ModuleFile(const std::string& path);
  ~ModuleFile();
  ModuleFile(const ModuleFile&) = delete;
  ModuleFile& operator=(const ModuleFile&) = delete;

  /// Lets libtorch load the module, which may execute code of the file. Opens no file.
  torch::jit::Module load() const;

  const ZipArchive& archive() const { return archive_; }
  int64_t bytes() const { return bytes_; }

  /// Says where a tensor that was loaded lies in the file. Throws UsageError where it lies nowhere.
  StoredTensor place_of(const std::string& name, const at::Tensor& tensor) const;

 private:
  class Reader;
  class Frees;
  ZipArchive archive_;
  int64_t bytes_;
  std::shared_ptr<Reader> reader_;
  c10::DebugInfoGuard frees_;  // of this thread
};

}  // namespace mpi4dl
