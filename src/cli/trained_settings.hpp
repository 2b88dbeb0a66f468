#pragma once

#include <string>

#include "cli/data_flags.hpp"
#include "cli/model_flags.hpp"
#include "cli/training_flags.hpp"
#include "train/manifest.hpp"

namespace CLI {
class App;
}

namespace mpi4dl {

// A checkpoint remembers the flags that decide what its values mean. Commands that use a trained
// model take them from there.

/// Returns the flags of the model and of how its images are shown to it, with their values.
Manifest::Settings model_settings(const ModelFlags& model, const DataFlags& data);

/// Holds what decides how a model learns; see decisive_settings.
struct TrainedWith {
  const ModelFlags& flags;
  const Model& model;
  const DataFlags& data;
  const TrainingFlags& training;
  int64_t effective_batch = 1;
  int64_t images = 0;  ///< to train on
};

/// Returns what a resumed run must be given again: all that decides its values, but for the
/// learning rate and its like, which one may want to change. Where ranks stand is free.
Manifest::Settings decisive_settings(const TrainedWith& with);

/// Gives those flags of the command that the user has not given the values that the checkpoint was
/// trained with. `given`: what model_settings says of the command's flags; throws UsageError where
/// the user has given another value than the checkpoint's. Does nothing where `path` is a mere file
/// of weights. The command must be the one whose flags were parsed. Every rank may call it alone.
/// Where the checkpoint holds the graph of its model, `model` takes that.
void adopt_settings(const std::string& path, CLI::App& command, const Manifest::Settings& given,
                    ModelFlags& model);

}  // namespace mpi4dl
