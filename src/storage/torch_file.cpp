#include "storage/torch_file.hpp"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <exception>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Whether the places of all elements lie in a storage of so many bytes.
bool fits(const PickledTensor& tensor, size_t bytes) {
  if (tensor.info.shape.size() != tensor.strides.size() || tensor.offset < 0) return false;
  int64_t last = tensor.offset;
  for (size_t axis = 0; axis < tensor.strides.size(); ++axis) {
    if (tensor.info.shape[axis] == 0) return true;
    if (tensor.info.shape[axis] < 0 || tensor.strides[axis] < 0) return false;
    last += (tensor.info.shape[axis] - 1) * tensor.strides[axis];
  }
  return (last + 1) * static_cast<int64_t>(c10::elementSize(tensor.info.type)) <=
         static_cast<int64_t>(bytes);
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

TorchFile::TorchFile(const std::string& path) : path_(path) {
  try {
    archive_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(path);
    const auto [pickle, bytes] = archive_->getRecord("data.pkl");
    places_ = read_state_dict({static_cast<const char*>(pickle.get()), bytes});
  } catch (const c10::Error&) {
    throw Error(fmt::format("'{}' is no file of torch.save, or it is damaged", path));
  } catch (const Error& error) {
    throw Error(fmt::format("'{}' cannot be read: {}", path, error.what()));
  }
  for (const auto& [name, place] : places_) tensors_[name] = place.info;
}

TorchFile::~TorchFile() = default;

at::Tensor TorchFile::read(const std::string& name) const {
  const PickledTensor& place = places_.at(name);
  at::DataPtr data;
  size_t bytes = 0;
  try {
    std::tie(data, bytes) = archive_->getRecord("data/" + place.storage);
  } catch (const c10::Error&) {
    throw Error(fmt::format("'{}' is damaged: the values of {} are not in it", path_, name));
  }
  ensure(fits(place, bytes), "'{}' is damaged: {} is larger than its values", path_, name);
  const at::Tensor all =
      at::from_blob(data.get(), {static_cast<int64_t>(bytes / c10::elementSize(place.info.type))},
                    place.info.type);
  return all.as_strided(place.info.shape, place.strides, place.offset)
      .clone(at::MemoryFormat::Contiguous);
}

}  // namespace mpi4dl
