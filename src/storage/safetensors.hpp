#pragma once

#include "storage/durable_file.hpp"
#include "storage/tensor_source.hpp"

namespace mpi4dl {

// safetensors files: the length of a header, the header (JSON: type, shape and place of each
// tensor), then the bytes of all tensors, contiguous and one after the other. Many programs read
// them, and none of them runs code that comes from a file.

/// Writes these tensors. One at a time is copied where it is not contiguous.
Digest write_safetensors(const std::string& path, const TensorMap& tensors);

/// Reads a file of tensors. Opening reads the header only; throws Error where it is not one.
class SafetensorsFile : public TensorSource {
 public:
  explicit SafetensorsFile(std::string path);

  const std::map<std::string, TensorInfo>& tensors() const override { return tensors_; }
  at::Tensor read(const std::string& name) const override;

 private:
  std::string path_;
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, int64_t> begin_;  // in the file
};

/// Returns how safetensors calls a type, such as "F32"; throws Error for one that it has no name
/// for.
std::string safetensors_type(c10::ScalarType type);
c10::ScalarType type_from_safetensors(const std::string& name);

}  // namespace mpi4dl
