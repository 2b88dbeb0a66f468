#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mpi4dl {

/// Maps names to tensors.
using TensorMap = std::map<std::string, at::Tensor>;

/// Holds what a file says of a tensor before its values are read.
struct TensorInfo {
  c10::ScalarType type = c10::ScalarType::Float;
  std::vector<int64_t> shape;

  bool operator==(const TensorInfo&) const = default;
};

/// Reads named tensors from a disk one by one, so that a rank reads only those that it holds.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::map<std::string, TensorInfo>& tensors() const = 0;
  /// Returns the values, contiguous.
  virtual at::Tensor read(const std::string& name) const = 0;
  /// Reads one of `shares` equal shares of the files, and throws Error where one is damaged. A
  /// single file has no checksum.
  virtual void check_files(int /*share*/ = 0, int /*shares*/ = 1) const {}
};

}  // namespace mpi4dl
