#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "import/program_tensors.hpp"

namespace mpi4dl {

// A model as PyTorch's operators, the common form of all files that hold one: a flat list of calls
// whose arguments are known or are results of calls before.

/// Names an input, a tensor or a result of a call.
struct Reference {
  std::string name;
  bool operator==(const Reference&) const = default;
};

/// Is what a call is given; nothing stands for None. Types have their numbers in torch.export.
struct Argument {
  using List = std::vector<Argument>;
  std::variant<std::monostate, bool, int64_t, double, std::string, Reference, List> value;

  bool none() const { return std::holds_alternative<std::monostate>(value); }
};

/// Is a call of one of PyTorch's operators.
struct Call {
  std::string target;    ///< "conv2d" of aten, "operator.add" of Python, "torch.sym_max"
  std::string overload;  ///< "default", "Tensor"
  /// Names them as the operator's schema does. Those that have their defaults may be missing.
  std::vector<std::pair<std::string, Argument>> arguments;
  std::vector<std::string> results;
  std::string module;        ///< the dotted path of the module it belongs to; empty at the top
  std::string module_class;  ///< "torch.nn.modules.conv.Conv2d"
  std::string source;        ///< the user's line of Python; empty where it is not known

  /// Returns null where an argument is missing or None.
  const Argument* find(const std::string& name) const;
};

/// Is a model that was read from a file.
struct Program {
  /// Is true where the file's operators are the few to which others are decomposed.
  bool decomposed = false;
  std::string image;                         ///< the value that is the model's input
  std::map<std::string, std::string> state;  ///< from values to the names of tensors
  std::vector<Call> calls;
  std::string result;
  /// Names the tensors that get new values when the model is called, which are no results.
  std::vector<std::string> changed;
  bool more_results = false;  ///< there are others, which are left out
  /// Holds the sizes of values when the file was written: N, C, ...; -1 for one that may vary.
  std::map<std::string, std::vector<int64_t>> sizes;
  std::shared_ptr<ProgramTensors> tensors;
};

}  // namespace mpi4dl
