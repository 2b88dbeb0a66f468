#pragma once

#include <torch/csrc/jit/ir/ir.h>
#include <torch/script.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "import/evaluator.hpp"
#include "import/torchscript/module_file.hpp"

namespace mpi4dl {

/// Is thrown where the size of a value is asked for that could not be imported: what has been
/// recorded so far ends with that value, which says why.
struct UnknownValue {
  std::string name;
};

/// Is thrown where a model has as many channels as its first layer reads, and not those supposed.
struct OtherChannels {
  int64_t channels;
};

/// Says where a call stands in the model.
struct Place {
  std::string module, module_class, source;
};

/// Is a tensor of a module, or a constant of its code.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool in_state_dict = true;
};

/// Records the operators that a walk through a module meets, as calls of a program.
///
/// In the walk, a tensor that depends on the image or on parameters is an at::Tensor that stands
/// for it: an empty one, or the parameter. It is the same object wherever it is the same tensor, in
/// lists and dictionaries too, so operators in place need no care. Other tensors are numbers that
/// are known, such as sizes in a trace.
class Recorder {
 public:
  Recorder(const ModuleFile& file, const Extents& image, int64_t channels);

  /// Makes tensors of the file known. One of several names is a value by the first of them.
  void add(const std::vector<NamedTensor>& tensors);
  at::Tensor image() const { return image_; }
  /// Returns a constant of the code: a number as it is, another as a tensor of the model.
  at::Tensor constant(const at::Tensor& tensor);

  /// Returns whether a value is, or contains, a tensor that stands for another.
  bool is_symbolic(const c10::IValue& value) const;
  /// Returns the lengths of a tensor's axes. Throws UnknownValue.
  std::vector<int64_t> sizes(const at::Tensor& tensor) const;
  /// Returns the value of a tensor of one element that is known before training; an undefined one
  /// where it is not.
  at::Tensor known_number(const at::Tensor& tensor) const;

  /// Records a call of a node's operator, and returns its results.
  std::vector<c10::IValue> record(const torch::jit::Node& node,
                                  const std::vector<c10::IValue>& inputs, const Place& place);
  /// Ends the program with a result.
  Program finish(const std::string& result, bool more_results);
  std::string name_of(const at::Tensor& tensor) const;

 private:
  struct Symbol {
    std::string name, tensor;  ///< as a value, and as a tensor of the file
    bool written = false;
  };
  Symbol* find(const c10::IValue& value);
  const Symbol* find(const c10::IValue& value) const;
  Argument argument(const c10::IValue& value) const;
  at::Tensor stand_in(const std::string& name);
  std::string new_name(const std::string& target);
  void check_channels(const Call& call) const;
  std::vector<std::string> list_results(const torch::jit::Node& node, const Call& call);

  const ModuleFile& file_;
  Program program_;
  std::unique_ptr<StepwiseEvaluation> evaluation_;
  at::Tensor image_;
  std::map<const void*, Symbol> symbols_;
  std::vector<at::Tensor> kept_;  // so that no other gets its place in memory
  std::map<std::string, int> counts_;
  bool channels_known_ = false;
};

}  // namespace mpi4dl
