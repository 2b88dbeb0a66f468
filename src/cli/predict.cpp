#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/inference.hpp"
#include "comm/agreement.hpp"
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

std::string header(const Inference& inference, bool with_errors) {
  std::string line = "name,label,predicted";
  for (int64_t i = 0; i < inference.predictions.logits.size(1); ++i)
    line += ',' + quoted((inference.classes.empty() ? "p" : "p_") + inference.class_text(i));
  return line + (with_errors ? ",error\n" : "\n");
}

/// Probabilities have as many digits as tell them apart. An image that could not be read has none.
std::string line(const Inference& inference, int64_t image, bool with_errors) {
  const auto classes = static_cast<size_t>(inference.predictions.logits.size(1));
  const auto logits = inference.predictions.values().subspan(image * classes, classes);
  const auto bad = inference.bad.find(image);
  const bool read = bad == inference.bad.end();
  const int64_t label = inference.data->label(image);
  std::string text = fmt::format("{},{},{}", quoted(inference.data->name(image)),
                                 label < 0 ? "" : quoted(inference.class_text(label)),
                                 read ? quoted(inference.class_text(predicted_class(logits))) : "");
  for (const double share : probabilities(logits, std::ssize(logits)))
    text += read ? fmt::format(",{}", share) : ",";
  if (with_errors) text += ',' + (read ? "" : quoted(bad->second));
  return text + '\n';
}

/// Known at the start, not after all images.
std::unique_ptr<ReplacementFile> open_file(const std::string& name) try {
  return std::make_unique<ReplacementFile>(name);
} catch (const Error& error) {
  throw UsageError(fmt::format("--out: {}", error.what()));
}

int run_predict(Session& session, PredictFlags& flags, CLI::App& command) {
  session.doing("opening the file for predictions");
  validate(!std::filesystem::is_directory(flags.out), "--out {} is a folder; name a file in it",
           flags.out);
  std::unique_ptr<ReplacementFile> file;
  run_together(session.world(), [&] {
    if (session.first()) file = open_file(flags.out);
  });
  const Inference inference = run_inference(session, flags.inference, command);
  if (!file) return 0;
  const bool with_errors = flags.inference.on_bad_image.skip();
  file->write(header(inference, with_errors));
  for (int64_t image = 0; image < inference.data->size(); ++image)
    file->write(line(inference, image, with_errors));
  file->finish();
  fmt::print("{} image{}{} in {:.1f} s, written to {}\n", inference.images(),
             inference.images() == 1 ? "" : "s", inference.left_out_text(), inference.seconds,
             flags.out);
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PredictFlags>();
  flags->inference.labelled = false;
  CLI::App* predict = app.add_subcommand(
      "predict", "Write what a trained model says of each image to a CSV file, in any layout");
  predict->option_defaults()->always_capture_default();
  predict
      ->add_option(
          "--out", flags->out,
          "The CSV file: name, label if known, predicted class, probability of each class, "
          "and what is wrong with an image that was skipped")
      ->required();
  flags->inference.add_to(*predict);
  predict->callback([flags, predict, &chosen] {
    chosen.check = [flags](int ranks) { flags->inference.check(ranks); };
    chosen.run = [flags, predict](Session& session) {
      return run_predict(session, *flags, *predict);
    };
  });
}

}  // namespace mpi4dl
