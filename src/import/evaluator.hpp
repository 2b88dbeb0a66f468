#pragma once

#include <memory>
#include <optional>

#include "import/draft.hpp"
#include "import/program.hpp"

namespace mpi4dl {

/// Is what became of a program at one image size.
struct Evaluation {
  Draft draft;
  bool evaluation = false;  ///< dropout or a norm was exported as it is in evaluation
  TensorMap made;           ///< tensors that the graph has and the file has not
};

/// Makes a graph of a program, for images of this size: numbers and sizes are computed, views are
/// followed, operators in place become those that make a new value, and calls without effect on the
/// result are left out. Throws UsageError that tells all that cannot be imported.
Evaluation evaluate(const Program& program, const Extents& image);

/// Evaluates a program that is still being written, one call after the other, for a front end that
/// has to know sizes on the way.
class StepwiseEvaluation {
 public:
  /// The program has an image and its sizes; both are kept.
  StepwiseEvaluation(const Program& program, const Extents& image);
  ~StepwiseEvaluation();

  /// Makes a value of a tensor of the program known.
  void add_state(const std::string& value, const std::string& tensor);
  /// Evaluates a call, whose one result stands for a list where `list` says so: then the parts of
  /// this get names of their own, which are none where the call cannot be imported.
  void step(Call& call, bool list);
  /// Returns the lengths of a value's axes; nothing where it could not be imported.
  std::optional<std::vector<int64_t>> sizes(const std::string& value) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mpi4dl
