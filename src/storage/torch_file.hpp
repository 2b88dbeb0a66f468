#pragma once

#include "storage/archived_tensor.hpp"
#include "storage/durable_file.hpp"

namespace mpi4dl {

/// Writes a file that Python reads with torch.load(path, weights_only=True): a dict of tensors.
Digest write_torch_file(const std::string& path, const TensorMap& tensors);

/// Reads a file that Python wrote with torch.save(model.state_dict(), path), or write_torch_file.
class TorchFile : public TensorSource {
 public:
  /// Reads names and shapes; throws Error where it is not such a file.
  explicit TorchFile(const std::string& path);

  const std::map<std::string, TensorInfo>& tensors() const override { return tensors_; }
  at::Tensor read(const std::string& name) const override;

 private:
  ZipArchive archive_;
  std::map<std::string, ArchivedTensor> places_;
  std::map<std::string, TensorInfo> tensors_;
};

}  // namespace mpi4dl
