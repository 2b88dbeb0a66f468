#pragma once

#include "train/checkpoint.hpp"
#include "train/checkpoint_folder.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// Returns which of `writers` writes each piece of so many bytes, such that all write about as
/// much.
std::vector<int> share_out(const std::vector<int64_t>& bytes, int writers);

/// Holds what a checkpoint keeps of a model that came from a file.
struct KeptModel {
  std::string name;   ///< of the file
  std::string graph;  ///< as text
  ExportedNames exported = {};
  TensorMap carried = {};  ///< by plain names; the first rank has them
};

/// Writes what all ranks hold as the checkpoint of the trainer's step. Every tensor is written
/// once, the ranks that hold it share the work. `about`: position and settings. `model`: null where
/// its name is enough. If it fails anywhere, all ranks throw the same Error, and nothing is left of
/// it. Collective.
void save_checkpoint(const CheckpointFolder& folder, const Trainer& trainer, Manifest about,
                     const Communicator& world, const KeptModel* model = nullptr);

/// Checks manifest and files, each file on one rank. Throws the same Error on all. Collective.
void check_checkpoint(const std::string& folder, const Communicator& world);

/// Reads what this rank holds, whatever layout wrote it, and resumes from there. Collective.
void load_checkpoint(const Checkpoint& checkpoint, Trainer& trainer, const Communicator& world);

}  // namespace mpi4dl
