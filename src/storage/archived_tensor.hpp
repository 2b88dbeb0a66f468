#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/tensor_source.hpp"
#include "storage/zip_archive.hpp"

namespace mpi4dl {

/// Says where an archive of torch has the values of a tensor.
struct ArchivedTensor {
  TensorInfo info;
  std::string storage;  ///< the entry that holds them, and perhaps those of other tensors
  int64_t offset = 0;   ///< elements in it before the first one
  std::vector<int64_t> strides;
};

/// Returns one more than the last element it has in its storage; -1 where there is no such place.
int64_t end_of(const ArchivedTensor& tensor);

/// Throws Error where a tensor is not in its storage, or would have more elements than that.
void check_place(const std::string& name, const ArchivedTensor& tensor, const ZipArchive& archive);

/// Returns the values, contiguous, of a tensor whose place is right.
at::Tensor read_tensor(const ArchivedTensor& tensor, const ZipArchive& archive);

}  // namespace mpi4dl
