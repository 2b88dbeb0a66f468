#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/add_command.hpp"
#include "cli/checkpoint_flags.hpp"
#include "storage/replacement_file.hpp"
#include "storage/safetensors.hpp"
#include "storage/torch_file.hpp"
#include "train/checkpoint_folder.hpp"
#include "train/weights.hpp"

namespace mpi4dl {
namespace {

struct ExportFlags {
  std::string checkpoint, format, file;
};

void write_file(const TensorMap& weights, const ExportFlags& flags) {
  UnfinishedFile file(flags.file);
  if (flags.format == "pt") {
    write_torch_file(file.partial(), weights);
  } else {
    write_safetensors(file.partial(), weights);
  }
  publish_durably(file);
}

int run_export(Session& session, const ExportFlags& flags) {
  session.doing("exporting weights");
  const std::unique_ptr<TensorSource> source = open_weights(flags.checkpoint);
  source->check_files();
  const TensorMap weights = all_weights(*source);
  int64_t elements = 0;
  for (const auto& [name, values] : weights) elements += values.numel();
  write_file(weights, flags);
  fmt::print("{} tensors with {} elements from {} are in {}\n", weights.size(), elements,
             flags.checkpoint, flags.file);
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Command& chosen) {
  auto [command, flags] = add_command<ExportFlags>(
      app, chosen, "export",
      "Write the weights of a checkpoint to one file that other programs read", run_export,
      [](const ExportFlags&, int ranks) {
        validate(ranks == 1, "export needs one process only; start it without mpirun");
      });
  add_checkpoint_flag(command, flags.checkpoint)->required();
  command
      .add_option("--to", flags.format,
                  "pt (Python: torch.load(file, weights_only=True)) or safetensors")
      ->required()
      ->check(CLI::IsMember({"pt", "safetensors"}));
  command.add_option("--out", flags.file, "The file to write")->required();
}

}  // namespace mpi4dl
