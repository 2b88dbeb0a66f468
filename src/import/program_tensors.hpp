#pragma once

#include <map>
#include <string>
#include <vector>

#include "storage/archived_tensor.hpp"

namespace mpi4dl {

/// Is a tensor of a model's file.
struct StoredTensor : ArchivedTensor {
  bool trained = true;        ///< its requires_grad
  bool in_state_dict = true;  ///< false for constants and buffers that are not persistent
};

/// Reads the tensors of a model from an archive. Throws Error where one does not lie in its
/// storage, or only in a part of another.
class ProgramTensors : public TensorSource {
 public:
  ProgramTensors() = default;
  /// Adds tensors by name, whose storages are entries of this archive.
  void add(const ZipArchive& archive, const std::map<std::string, StoredTensor>& stored);

  const std::map<std::string, TensorInfo>& tensors() const override { return infos_; }
  at::Tensor read(const std::string& name) const override;

  const StoredTensor& stored(const std::string& name) const { return places_.at(name).tensor; }
  /// Returns all names of each tensor, by the first of them.
  std::map<std::string, std::vector<std::string>> aliases() const;

 private:
  struct Place {
    StoredTensor tensor;
    int archive;
  };
  void check_sharing() const;

  std::vector<ZipArchive> archives_;
  std::map<std::string, Place> places_;
  std::map<std::string, TensorInfo> infos_;
};

}  // namespace mpi4dl
