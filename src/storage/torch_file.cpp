#include "storage/torch_file.hpp"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <exception>

#include "base/error.hpp"
#include "storage/state_dict_pickle.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kMostPickleBytes = int64_t{64} << 20;

ZipArchive open_archive(const std::string& path) {
  try {
    return ZipArchive(path);
  } catch (const Error& error) {
    throw Error(
        fmt::format("'{}' is no file of torch.save, or it is damaged: {}", path, error.what()));
  }
}

}  // namespace

Digest write_torch_file(const std::string& path, const TensorMap& tensors) {
  c10::Dict<std::string, at::Tensor> values;
  for (const auto& [name, tensor] : tensors)
    values.insert(name, tensor.contiguous(at::MemoryFormat::Contiguous));
  std::string pickle;
  torch::jit::Pickler pickler([&](const char* data, size_t bytes) { pickle.append(data, bytes); },
                              nullptr, nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(values);
  pickler.stop();

  DurableFile file(path);
  // The archive's destructor writes to its end: it must not see a failure, so that comes later.
  std::exception_ptr failure;
  caffe2::serialize::PyTorchStreamWriter archive([&](const void* data, size_t bytes) {
    try {
      if (!failure) file.write(data, bytes);
    } catch (const Error&) {
      failure = std::current_exception();
    }
    return bytes;
  });
  archive.writeRecord("data.pkl", pickle.data(), pickle.size());
  int number = 0;
  for (const at::Tensor& tensor : pickler.tensorData()) {
    const auto written = torch::jit::getWriteableTensorData(tensor);
    archive.writeRecord(fmt::format("data/{}", number++), written.data(), written.sizeInBytes());
  }
  archive.writeEndOfFile();
  if (failure) std::rethrow_exception(failure);
  return file.finish();
}

TorchFile::TorchFile(const std::string& path) : archive_(open_archive(path)) {
  try {
    const std::string pickle = archive_.name_ending("data.pkl");
    const std::string folder = pickle.substr(0, pickle.rfind('/') + 1) + "data/";
    places_ = read_state_dict(archive_.read(pickle, kMostPickleBytes));
    for (auto& [name, place] : places_) {
      place.storage = folder + place.storage;
      check_place(name, place, archive_);
      tensors_[name] = place.info;
    }
  } catch (const Error& error) {
    throw Error(fmt::format("'{}' cannot be read: {}", path, error.what()));
  }
}

at::Tensor TorchFile::read(const std::string& name) const {
  try {
    return read_tensor(places_.at(name), archive_);
  } catch (const Error& error) {
    throw Error(fmt::format("'{}' cannot be read: {}", archive_.path(), error.what()));
  }
}

}  // namespace mpi4dl
