#include "import/torchscript/module_file.hpp"

#include <c10/core/Allocator.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <fcntl.h>
#include <torch/version.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "import/exported_tensors.hpp"
#include "memory/libtorch_version.hpp"
#include "storage/durable_file.hpp"

namespace mpi4dl {
namespace {

/// Tensors of up to so many bytes have their values: constants that are numbers, and counters.
constexpr size_t kMostValueBytes = 1 << 16;

bool holds_values(const std::string& entry) {
  return entry.find("/data/") != std::string::npos ||
         entry.find("/constants/") != std::string::npos;
}

}  // namespace

std::string said_by(const std::exception& error) {
  const auto* with_backtrace = dynamic_cast<const c10::Error*>(&error);
  std::string text =
      with_backtrace == nullptr ? error.what() : with_backtrace->what_without_backtrace();
  if (text.find("allocate memory") != std::string::npos) throw std::bad_alloc();
  text.erase(0, text.find_first_not_of(" \n"));
  text.erase(text.find_last_not_of(" \n") + 1);
  // Of code that was run, the last line says what failed, and otherwise the first.
  const bool was_run = text.find("in the TorchScript interpreter") != std::string::npos;
  return was_run ? text.substr(text.rfind('\n') + 1) : text.substr(0, text.find('\n'));
}

/// Reads for libtorch, and remembers to which memory it has read the values of which entry, until
/// that memory is freed: code of the file may then have another tensor there.
class ModuleFile::Reader : public caffe2::serialize::ReadAdapterInterface {
 public:
  Reader(const std::string& path, const ZipArchive& archive)
      : bytes_(static_cast<size_t>(file_size(path))),
        descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    ensure(descriptor_ >= 0, "it cannot be opened: {}", std::strerror(errno));
    for (const auto& [name, entry] : archive.entries())
      if (!entry.compressed && entry.bytes > 0 && holds_values(name))
        values_[entry.begin] = {name, static_cast<size_t>(entry.bytes)};
  }
  ~Reader() override { close(descriptor_); }

  size_t size() const override { return bytes_; }

  size_t read(uint64_t position, void* buffer, size_t count, const char* /*what*/) const override {
    const auto found = values_.find(static_cast<int64_t>(position));
    if (found != values_.end() && found->second.second == count) {
      entries_[buffer] = found->second.first;
      if (count > kMostValueBytes) return count;
    }
    size_t done = 0;
    while (done < count) {
      const ssize_t here = pread(descriptor_, static_cast<char*>(buffer) + done, count - done,
                                 static_cast<off_t>(position + done));
      if (here <= 0) break;
      done += static_cast<size_t>(here);
    }
    return done;
  }

  /// Returns the entry whose values were read to this memory; an empty name where there is none.
  std::string entry_at(const void* memory) const {
    const auto found = entries_.find(memory);
    return found == entries_.end() ? std::string() : found->second;
  }
  void forget(const void* memory) const { entries_.erase(memory); }

 private:
  size_t bytes_;
  int descriptor_;
  std::map<int64_t, std::pair<std::string, size_t>> values_;  // by their places in the file
  mutable std::map<const void*, std::string> entries_;        // by their places in memory
};

/// Is told by libtorch what memory it takes and frees.
class ModuleFile::Frees : public c10::MemoryReportingInfoBase {
 public:
  explicit Frees(std::shared_ptr<Reader> reader) : reader_(std::move(reader)) {}
  void reportMemoryUsage(void* memory, int64_t bytes, ReportedBytes /*total_allocated*/,
                         ReportedBytes /*total_reserved*/, c10::Device /*device*/) override {
    if (bytes < 0) reader_->forget(memory);
  }
  bool memoryProfilingEnabled() const override { return true; }

 private:
  std::shared_ptr<Reader> reader_;
};

ModuleFile::ModuleFile(const std::string& path)
    : archive_(path),
      bytes_(file_size(path)),
      reader_(std::make_shared<Reader>(path, archive_)),
      frees_(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Frees>(reader_)) {}

ModuleFile::~ModuleFile() = default;

torch::jit::Module ModuleFile::load() const {
  try {
    return torch::jit::load(reader_, at::Device(at::kCPU));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("libtorch {} cannot load it: {}", TORCH_VERSION, said_by(error)));
  }
}

StoredTensor ModuleFile::place_of(const std::string& name, const at::Tensor& tensor) const {
  validate(tensor.layout() == at::kStrided && tensor.device().is_cpu() && !tensor.is_quantized(),
           "{} is no plain tensor, but a quantised or sparse one", name);
  validate(number_of_type(tensor.scalar_type()) != 0, "{} is of a type that no network trains",
           name);
  StoredTensor place{{.info = {tensor.scalar_type(), tensor.sizes().vec()},
                      .storage = reader_->entry_at(tensor.storage().data()),
                      .offset = tensor.storage_offset(),
                      .strides = tensor.strides().vec()},
                     tensor.requires_grad()};
  const bool changed = tensor._version() != 0;  // in place, by code of the file
  validate(!place.storage.empty() && !changed,
           "the values of {} are not in the file, but computed by code "
           "when it is loaded",
           name);
  return place;
}

}  // namespace mpi4dl
