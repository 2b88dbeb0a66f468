#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mpi4dl {

/// Tensors by name.
using TensorMap = std::map<std::string, at::Tensor>;

/// What a file says of a tensor before its values are read.
struct TensorInfo {
  c10::ScalarType type = c10::ScalarType::Float;
  std::vector<int64_t> shape;

  bool operator==(const TensorInfo&) const = default;
};

/// Named tensors on a disk, read one by one, so that a rank reads only those that it holds.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::map<std::string, TensorInfo>& tensors() const = 0;
  /// The values, contiguous.
  virtual at::Tensor read(const std::string& name) const = 0;
  /// Reads one of `shares` equal shares of the files, and throws Error where one is damaged. A
  /// single file has no checksum.
  virtual void check_files(int /*share*/ = 0, int /*shares*/ = 1) const {}
};

}  // namespace mpi4dl
