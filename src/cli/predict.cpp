#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "cli/add_command.hpp"
#include "cli/inference.hpp"
#include "comm/agreement.hpp"
#include "data/csv.hpp"
#include "storage/replacement_file.hpp"

namespace mpi4dl {
namespace {

struct PredictFlags {
  InferenceFlags inference;
  std::string out;
};

std::string header(const Inference& inference, bool with_errors) {
  std::string line = "name,label,predicted";
  for (int64_t i = 0; i < inference.predictions.logits.size(1); ++i)
    line += ',' + csv_field((inference.classes.empty() ? "p" : "p_") + inference.class_text(i));
  return line + (with_errors ? ",error\n" : "\n");
}

/// Writes probabilities with as many digits as tell them apart, and none of an image that could not
/// be read.
std::string line(const Inference& inference, int64_t image, bool with_errors) {
  const auto classes = static_cast<size_t>(inference.predictions.logits.size(1));
  const auto logits = inference.predictions.values().subspan(image * classes, classes);
  const auto bad = inference.bad.find(image);
  const bool read = bad == inference.bad.end();
  const int64_t label = inference.data->label(image);
  std::string text =
      fmt::format("{},{},{}", csv_field(inference.data->name(image)),
                  label < 0 ? "" : csv_field(inference.class_text(label)),
                  read ? csv_field(inference.class_text(predicted_class(logits))) : "");
  for (const double share : probabilities(logits, std::ssize(logits)))
    text += read ? fmt::format(",{}", share) : ",";
  if (with_errors) text += ',' + (read ? "" : csv_field(bad->second));
  return text + '\n';
}

/// Fails at the start, not after all images.
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
  auto [predict, flags] = add_command<PredictFlags>(
      app, chosen, "predict",
      "Write a trained model's predictions for each image to a CSV file, in any layout",
      run_predict, [](const PredictFlags& given, int ranks) { given.inference.check(ranks); });
  flags.inference.labelled = false;
  predict
      .add_option("--out", flags.out,
                  "The CSV file: name, label if known, predicted class, probability of each class, "
                  "and what is wrong with an image that was skipped")
      ->required();
  flags.inference.add_to(predict);
}

}  // namespace mpi4dl
