#pragma once

#include <memory>

#include "storage/safetensors.hpp"
#include "train/manifest.hpp"

namespace mpi4dl {

// A checkpoint is a folder:
//
//     step-00000120/manifest.json             what is where; step, position, flags that must match
//                   manifest.crc32            length and checksum of the manifest
//                   part-00000.safetensors    parameters, statistics, what the optimizer remembers;
//                   part-00003.safetensors    one file for each rank that wrote
//
// Each rank writes a file of its own: no file system must order writes of many nodes to one file,
// and each file is written, summed up and synced by one process. Tensors have global names and
// shapes, so the number of parts says nothing about who can read them.

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kManifestSum = "manifest.crc32";

/// A checkpoint to read from. Parameters and statistics have plain names; "momentum/NAME" and
/// "variation/NAME" are what an optimizer remembers of a parameter.
class Checkpoint : public TensorSource {
 public:
  /// Reads the manifest; throws Error where it is missing or damaged.
  explicit Checkpoint(std::string folder);

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  const std::map<std::string, TensorInfo>& tensors() const override { return tensors_; }
  at::Tensor read(const std::string& name) const override;
  void check_files(int share = 0, int shares = 1) const override;

 private:
  std::string folder_;
  Manifest manifest_;
  std::map<std::string, TensorInfo> tensors_;
  mutable std::map<std::string, std::unique_ptr<SafetensorsFile>> open_;
};

/// Writes the manifest, which makes a folder of parts a checkpoint.
void write_manifest(const std::string& folder, const Manifest& manifest);

}  // namespace mpi4dl
