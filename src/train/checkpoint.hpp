#pragma once

#include <memory>
#include <optional>

#include "storage/safetensors.hpp"
#include "train/manifest.hpp"

namespace mpi4dl {

// A checkpoint is a folder:
//
//     step-00000120/manifest.json             what is where; step, position, flags that must match
//                   manifest.crc32            length and checksum of the manifest
//                   part-00000.safetensors    parameters, statistics, the state of the optimizer;
//                   part-00003.safetensors    one file for each rank that wrote
//                   model.graph               the graph of a model that came from a file
//
// Each rank writes a file of its own: no file system must order writes of many nodes to one file,
// and each file is written, summed up and synced by one process. Tensors have global names and
// shapes, so the number of parts says nothing about who can read them.

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kManifestSum = "manifest.crc32";
inline constexpr const char* kGraphFile = "model.graph";
/// Stands before the names of tensors that belong to no parameter, and that a model takes along.
inline constexpr const char* kCarried = "carried/";

/// Reads a checkpoint. Parameters and statistics have plain names; the state of the optimizer is
/// "exp_avg/NAME" and "exp_avg_sq/NAME" (Adam, AdamW) or "momentum_buffer/NAME" (SGD) for each
/// parameter, whatever the version of the checkpoint calls it.
class Checkpoint : public TensorSource {
 public:
  /// Reads the manifest; throws Error where it is missing or damaged.
  explicit Checkpoint(std::string folder);

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  const std::map<std::string, TensorInfo>& tensors() const override { return tensors_; }
  at::Tensor read(const std::string& name) const override;
  /// Returns the text of the model's graph, if the model came from a file; throws Error where it is
  /// damaged.
  std::optional<std::string> graph() const;
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
