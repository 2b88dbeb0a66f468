#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/inference.hpp"
#include "storage/replacement_file.hpp"

namespace mpi4dl {
namespace {

struct PredictFlags {
  InferenceFlags inference;
  std::string out;
};

/// A field of a CSV file, in quotes where it has to be.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + '"';
}

std::string header(int64_t classes) {
  std::string line = "name,label,predicted";
  for (int64_t i = 0; i < classes; ++i) line += fmt::format(",p{}", i);
  return line + '\n';
}

/// Probabilities have as many digits as tell them apart.
std::string line(const Dataset& data, int64_t image, std::span<const double> logits) {
  const int64_t label = data.label(image);
  std::string text = fmt::format("{},{},{}", quoted(data.name(image)),
                                 label < 0 ? "" : std::to_string(label), predicted_class(logits));
  for (const double share : probabilities(logits, std::ssize(logits)))
    text += fmt::format(",{}", share);
  return text + '\n';
}

/// Known at the start, not after all images.
std::unique_ptr<ReplacementFile> open_file(const std::string& name) try {
  return std::make_unique<ReplacementFile>(name);
} catch (const Error& error) {
  throw UsageError(fmt::format("--out: {}", error.what()));
}

int run_predict(Session& session, const PredictFlags& flags) {
  session.doing("opening the file for predictions");
  validate(!std::filesystem::is_directory(flags.out), "--out {} is a folder; name a file in it",
           flags.out);
  const auto file = session.first() ? open_file(flags.out) : nullptr;
  const Inference inference = run_inference(session, flags.inference);
  if (!file) return 0;
  const auto classes = static_cast<size_t>(inference.predictions.logits.size(1));
  file->write(header(inference.predictions.logits.size(1)));
  for (int64_t image = 0; image < inference.data->size(); ++image)
    file->write(line(*inference.data, image,
                     inference.predictions.values().subspan(image * classes, classes)));
  file->finish();
  std::printf("%lld images in %.1f s, written to %s\n",
              static_cast<long long>(inference.data->size()), inference.seconds, flags.out.c_str());
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* predict = app.add_subcommand(
      "predict", "Write what a trained model says of each image to a CSV file, in any layout");
  predict->option_defaults()->always_capture_default();
  predict
      ->add_option("--out", flags->out,
                   "The CSV file: name, label if known, predicted class, class probabilities")
      ->required();
  flags->inference.add_to(*predict);
  predict->callback([flags, &chosen] {
    chosen = [flags](Session& session) { return run_predict(session, *flags); };
  });
}

}  // namespace mpi4dl
