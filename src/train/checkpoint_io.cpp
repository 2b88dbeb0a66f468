#include "train/checkpoint_io.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/error.hpp"
#include "comm/agreement.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

/// Returns the tensors that this rank writes. What several stages hold, the first one writes.
TensorMap own_share(const Trainer& trainer) {
  TensorMap mine;
  for (auto& [stage, state] : trainer.state()) {
    const int first = trainer.cells().at(stage).first;
    for (const std::string& name : parameters_before(trainer.graph(), first)) state.erase(name);
    const Communicator& group = trainer.groups().data_parallel().at(stage);
    std::vector<int64_t> bytes;
    for (const auto& [name, values] : state) bytes.push_back(static_cast<int64_t>(values.nbytes()));
    const std::vector<int> writers = share_out(bytes, group.size());
    size_t next = 0;
    for (const auto& [name, values] : state)
      if (writers[next++] == group.rank()) mine[name] = values;
  }
  return mine;
}

/// Writes the graph, and returns what else the first rank writes of the model.
TensorMap write_model(const std::string& folder, const KeptModel& model, Manifest& about) {
  about.files[kGraphFile] = write_durably(folder + "/" + kGraphFile, model.graph);
  about.model = model.name;
  about.exported = model.exported;
  TensorMap carried;
  for (const auto& [name, values] : model.carried) carried[kCarried + name] = values;
  return carried;
}

/// Writes a part, and says what is in it.
Manifest write_part(const std::string& folder, const TensorMap& tensors, int rank) {
  Manifest part;
  if (tensors.empty()) return part;
  const std::string name = fmt::format("part-{:05}.safetensors", rank);
  part.files[name] = write_safetensors(folder + "/" + name, tensors);
  for (const auto& [tensor, values] : tensors)
    part.tensors[tensor] = {name, tensor, {values.scalar_type(), values.sizes().vec()}};
  return part;
}

/// Throws where ranks of other nodes have written to a disk of their own.
void check_visible(const std::string& folder, const Manifest& manifest) {
  for (const auto& [name, digest] : manifest.files)
    ensure(std::filesystem::exists(std::filesystem::path(folder) / name),
           "{} is not there; the folder must be the same for all nodes", name);
}

}  // namespace

std::vector<int> share_out(const std::vector<int64_t>& bytes, int writers) {
  std::vector<size_t> largest_first(bytes.size());
  std::iota(largest_first.begin(), largest_first.end(), 0);
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  std::vector<int64_t> load(writers, 0);
  std::vector<int> chosen(bytes.size());
  for (const size_t piece : largest_first) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += bytes[piece];
    chosen[piece] = static_cast<int>(least - load.begin());
  }
  return chosen;
}

void save_checkpoint(const CheckpointFolder& folder, const Trainer& trainer, Manifest about,
                     const Communicator& world, const KeptModel* model) {
  about.step = trainer.steps();
  const std::string partial = folder.partial(about.step);
  const bool first = world.rank() == 0;
  try {
    run_together(world, [&] {
      if (first) folder.begin(about.step);
    });
    Manifest part;
    run_together(world, [&] {
      TensorMap share = own_share(trainer);
      if (first && model != nullptr) share.merge(write_model(partial, *model, about));
      part = write_part(partial, share, world.rank());
    });
    const std::vector<std::string> parts = gather_texts(world, to_json(part));
    run_together(world, [&] {
      if (!first) return;
      for (const std::string& text : parts) {
        Manifest other = manifest_from_json(text);
        about.files.merge(other.files);
        about.tensors.merge(other.tensors);
      }
      check_visible(partial, about);
      write_manifest(partial, about);
      folder.publish(about.step);
    });
  } catch (const Error& error) {
    if (first) folder.abandon(about.step);
    throw CommonError(
        fmt::format("the checkpoint of step {} could not be written: {}; older ones are "
                    "as they were",
                    about.step, error.what()));
  }
}

void check_checkpoint(const std::string& folder, const Communicator& world) {
  run_together(world, [&] { Checkpoint(folder).check_files(world.rank(), world.size()); });
}

void load_checkpoint(const Checkpoint& checkpoint, Trainer& trainer, const Communicator& world) {
  run_together(world, [&] {
    for (const auto& [stage, state] : trainer.state())
      for (const auto& [name, values] : state) copy_tensor(checkpoint, name, values);
  });
  trainer.restore(checkpoint.manifest().step);
}

}  // namespace mpi4dl
