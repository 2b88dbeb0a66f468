#pragma once

#include <memory>
#include <string>

#include "cli/data_flags.hpp"
#include "cli/model_flags.hpp"
#include "cli/parallel_flags.hpp"
#include "comm/session.hpp"
#include "train/evaluator.hpp"

namespace mpi4dl {

/// The flags of every command that asks a trained model.
struct InferenceFlags {
  ModelFlags model;
  ParallelFlags parallel;
  DataFlags data;
  std::string weights;
  std::string part;  // empty: validation where images are held out, else all
  std::string dtype = "float32";
  int64_t batch = 8;
  uint64_t seed = 1;

  void add_to(CLI::App& command);
};

/// What a trained model says of images.
struct Inference {
  std::shared_ptr<const Dataset> data;
  Predictions predictions = {};
  double seconds = 0;
};

/// Loads the weights and runs the images through the model. Collective over the world.
Inference run_inference(Session& session, const InferenceFlags& flags);

}  // namespace mpi4dl
