#include "storage/archived_tensor.hpp"

#include <ATen/ATen.h>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kMostAxes = 8;

/// Adds a * b, both at least 0, to sum; false where that is too large a number.
bool add_product(int64_t& sum, int64_t a, int64_t b) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(sum, product, &sum);
}

}  // namespace

int64_t end_of(const ArchivedTensor& tensor) {
  const auto& shape = tensor.info.shape;
  if (shape.size() != tensor.strides.size() || shape.size() > kMostAxes || tensor.offset < 0)
    return -1;
  int64_t last = tensor.offset, elements = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 0 || tensor.strides[axis] < 0) return -1;
    if (__builtin_mul_overflow(elements, shape[axis], &elements)) return -1;
    if (shape[axis] > 0 && !add_product(last, shape[axis] - 1, tensor.strides[axis])) return -1;
  }
  if (last == INT64_MAX) return -1;
  return elements == 0 ? tensor.offset : last + 1;
}

void check_place(const std::string& name, const ArchivedTensor& tensor, const ZipArchive& archive) {
  const ZipEntry* storage = archive.find(tensor.storage);
  ensure(storage != nullptr, "the values of {} are not in it", name);
  const auto size = static_cast<int64_t>(c10::elementSize(tensor.info.type));
  const int64_t end = end_of(tensor), capacity = storage->bytes / size;
  ensure(end >= 0 && end <= capacity, "{} is larger than its values", name);
  int64_t elements = 1;
  for (const int64_t length : tensor.info.shape) elements *= length;
  ensure(elements <= capacity, "{} has elements that lie in one place", name);
}

at::Tensor read_tensor(const ArchivedTensor& tensor, const ZipArchive& archive) {
  at::Tensor storage = at::empty({archive.find(tensor.storage)->bytes}, at::kByte);
  archive.read(tensor.storage, storage.data_ptr());
  const auto size = static_cast<int64_t>(c10::elementSize(tensor.info.type));
  const at::Tensor all = storage.narrow(0, 0, storage.numel() / size * size).view(tensor.info.type);
  return all.as_strided(tensor.info.shape, tensor.strides, tensor.offset)
      .clone(at::MemoryFormat::Contiguous);
}

}  // namespace mpi4dl
