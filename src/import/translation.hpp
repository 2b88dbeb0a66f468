#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "import/draft.hpp"
#include "import/item.hpp"
#include "import/program.hpp"

namespace mpi4dl {

/// Says why a call cannot be imported: the end of a sentence that begins with the call.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Is thrown where a call reads something that could not be imported itself.
struct FollowsFromAnother {};

/// Throws Refusal with one sentence.
template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> sentence, Args&&... args) {
  throw Refusal(fmt::format(sentence, std::forward<Args>(args)...));
}

/// Says how a translation of a program goes, and collects what is to be told of it.
struct ImportState {
  const Program& program;
  Draft draft = {};
  int64_t batch = 2;
  bool other_size = false;               ///< than that of the image when the file was written
  Extents exported_image = {};           ///< -1 where it may vary
  std::set<Extents> exported_maps = {};  ///< the sizes of maps that were made, in the file
  std::set<Extents> pooled_sizes = {};   ///< which adaptive pools were told
  std::map<std::string, int64_t> reader_strides = {};
  bool trains = true;         ///< the program was exported as it is in training, at least in part
  bool evaluation = false;    ///< an operator was exported as it is in evaluation, and is trained
  TensorMap made = {};        ///< tensors that the graph has and the file has not
  int64_t made_elements = 0;  ///< of these
  int masks = 0;              ///< of random numbers, which are counted
  std::set<int> used_masks = {};
  std::function<Item(const std::string&)> lookup = {};
};

/// Is one call of the program while it is translated: it reads the arguments, whose defaults
/// are given where they are read, and makes nodes.
class Translation {
 public:
  Translation(ImportState& state, const Call& call) : state_(state), call_(call) {}

  const Call& call() const { return call_; }
  ImportState& state() { return state_; }

  bool given(const std::string& name) const { return call_.find(name) != nullptr; }
  Item item(const std::string& name) const;
  int64_t integer(const std::string& name, std::optional<int64_t> otherwise = {}) const;
  double number(const std::string& name, std::optional<double> otherwise = {}) const;
  bool flag(const std::string& name, bool otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::vector<int64_t> integers(const std::string& name,
                                const std::vector<int64_t>& otherwise = {}) const;
  /// Returns one number for each of so many spatial axes: one alone counts for all.
  Extents extents(const std::string& name, size_t axes, int64_t otherwise) const;
  /// Returns true where no number of an argument was computed from a size.
  bool literal(const std::string& name) const;

  View view(const std::string& name) const;
  std::vector<View> views(const std::string& name) const;
  /// Returns a view that is a map with spatial axes, or a vector.
  View plain(const std::string& name) const;
  View map(const std::string& name) const;
  /// Returns a tensor of the file; nothing where the argument is missing.
  std::optional<Weight> weight(const std::string& name) const;

  const Shape& shape(const View& view) const { return state_.draft.nodes[view.node].shape; }
  /// Returns the axis that a number of PyTorch means, where -1 is the last one.
  size_t axis(const View& view, int64_t number) const;

  /// Makes a node and returns a plain view of it.
  View add(const Operator& op, const std::vector<View>& inputs,
           const std::vector<std::optional<Weight>>& weights = {});
  /// Makes a node of an operator that reads each pixel alone, and returns the same view of it.
  View add_pointwise(const Operator& op, const View& input,
                     const std::vector<std::optional<Weight>>& weights = {});

 private:
  Item resolve(const Argument& argument) const;
  int add_node(const Operator& op, const std::vector<View>& inputs,
               const std::vector<std::optional<Weight>>& weights);
  void count_made(int64_t elements);
  /// Makes a constant of the graph, whose name is no tensor's of the file.
  ParameterChoice make(std::string name, const at::Tensor& value);
  ParameterChoice choose(const Parameter& parameter, const std::optional<Weight>& weight);

  ImportState& state_;
  const Call& call_;
};

/// Brings a view to a plain one where an operator can: flattened pixels, shuffled channels.
View settle(Translation& call, View view);

/// Returns what a weight is computed by: nothing but itself, if it is a tensor of the file.
Formula formula_of(Translation& call, const Weight& weight);
/// Returns the weight that a call computes.
Weight computed_weight(const Translation& call, Formula formula);

/// Returns a number as a floating-point one; nothing for other items.
std::optional<double> as_number(const Item& item);

}  // namespace mpi4dl
