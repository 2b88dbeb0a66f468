#pragma once

#include <memory>
#include <string>

#include "cli/bad_images.hpp"
#include "cli/data_flags.hpp"
#include "cli/model_flags.hpp"
#include "cli/parallel_flags.hpp"
#include "comm/session.hpp"
#include "train/examination.hpp"

namespace mpi4dl {

/// Holds the flags of every command that runs a trained model.
struct InferenceFlags {
  ModelFlags model;
  ParallelFlags parallel;
  DataFlags data;
  std::string weights;
  std::string part;  // empty: validation where images are held out, else all
  std::string dtype = "float32";
  BadImageFlag on_bad_image;
  bool labelled = true;  // images whose class nobody knows are refused
  int64_t batch = 8;
  uint64_t seed = 1;

  void add_to(CLI::App& command);
  /// Throws UsageError where the layout cannot be.
  void check(int ranks) const;
};

/// Holds what a trained model predicts for images.
struct Inference {
  std::shared_ptr<const Dataset> data;
  std::vector<std::string> classes;  ///< their names; none where they have indices alone
  Predictions predictions = {};
  BadSamples bad = {};  ///< images that could not be read: their predictions mean nothing
  double seconds = 0;
  enum class Part { all, training, held_out } part = Part::all;

  /// Returns the name of a class, or its index where it has none.
  std::string class_text(int64_t label) const;
  /// Returns how many images there are in the predictions.
  int64_t images() const { return data->size() - std::ssize(bad); }
  /// Says which part of the images these are: those held out, or those trained on
  /// too.
  std::string part_text() const;
  /// Returns " (2 of 40 left out)", or nothing.
  std::string left_out_text() const;
};

/// Loads the weights and runs the images through the model. Flags that `command` was not given get
/// the values that the checkpoint was trained with. Collective over the world.
Inference run_inference(Session& session, InferenceFlags& flags, CLI::App& command);

}  // namespace mpi4dl
