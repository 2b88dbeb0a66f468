#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "cli/checkpoint_flags.hpp"
#include "cli/commands.hpp"
#include "comm/session.hpp"
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
  add_checkpoint_flag(*command, flags->checkpoint)->required();
  command
      ->add_option("--to", flags->format,
                   "pt (Python: torch.load(file, weights_only=True)) or safetensors")
      ->required()
      ->check(CLI::IsMember({"pt", "safetensors"}));
  command->add_option("--out", flags->file, "The file to write")->required();
  command->callback([flags, &chosen] {
    chosen.check = [](int ranks) {
      validate(ranks == 1, "export needs one process only; start it without mpirun");
    };
    chosen.run = [flags](Session& session) { return run_export(session, *flags); };
  });
}

}  // namespace mpi4dl
