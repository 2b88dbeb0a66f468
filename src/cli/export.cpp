#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "comm/session.hpp"
#include "storage/safetensors.hpp"
#include "storage/torch_file.hpp"
#include "train/checkpoint_folder.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

struct ExportFlags {
  std::string checkpoint, format, file;
};

/// Under another name until it is complete: a file of this name is replaced as a whole or not at
/// all.
void write_file(const TensorMap& weights, const ExportFlags& flags) {
  const std::string partial = flags.file + ".partial";
  try {
    if (flags.format == "pt") {
      write_torch_file(partial, weights);
    } else {
      write_safetensors(partial, weights);
    }
    std::filesystem::rename(partial, flags.file);
  } catch (const std::exception&) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw;
  }
}

int run_export(Session& session, const ExportFlags& flags) {
  session.doing("exporting weights");
  validate(session.world().size() == 1, "export needs one process only; start it without mpirun");
  const std::unique_ptr<TensorSource> source = open_weights(flags.checkpoint);
  source->check_files();
  TensorMap weights;
  int64_t numbers = 0;
  for (const auto& [name, info] : source->tensors())
    if (is_weight(name)) {
      weights[name] = source->read(name);
      numbers += weights[name].numel();
    }
  write_file(weights, flags);
  std::printf("%zu tensors with %lld numbers from %s are in %s\n", weights.size(),
              static_cast<long long>(numbers), flags.checkpoint.c_str(), flags.file.c_str());
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = app.add_subcommand(
      "export", "Write the weights of a checkpoint to one file that other programs read");
  command
      ->add_option("--checkpoint", flags->checkpoint,
                   "A checkpoint, a folder of checkpoints (the newest one), or a file of weights")
      ->required();
  command
      ->add_option("--to", flags->format,
                   "pt (Python: torch.load(file, weights_only=True)) or safetensors")
      ->required()
      ->check(CLI::IsMember({"pt", "safetensors"}));
  command->add_option("--out", flags->file, "The file to write")->required();
  command->callback([flags, &chosen] {
    chosen = [flags](Session& session) { return run_export(session, *flags); };
  });
}

}  // namespace mpi4dl
