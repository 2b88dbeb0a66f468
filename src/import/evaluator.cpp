#include "import/evaluator.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "import/baked.hpp"
#include "import/exported_tensors.hpp"
#include "import/liveness.hpp"
#include "import/problems.hpp"
#include "import/table.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kLongestAxis = int64_t{1} << 30;
constexpr size_t kMostAxes = 16;
constexpr int64_t kLargestBatch = int64_t{1}
                                  << 16;  // so that the elements of all images can be counted

/// Is a piece of memory as PyTorch has it: counts the writes to it.
struct Storage {
  int writes = 0;
  std::string writer;  ///< the operator of the last one
};

/// Is a tensor object. Operators in place change its value for all of its names; those of other
/// objects in the same storage are not followed, so that they cannot be read any more.
struct Object {
  Item item;
  std::shared_ptr<Storage> storage = std::make_shared<Storage>();
  int writes = 0;  ///< to the storage, up to which `item` is right
};

/// Returns whether an operator is as it is in training alone. (A batch norm without statistics is
/// the same in evaluation.)
bool trains(const Program& program) {
  return std::ranges::any_of(program.calls, [](const Call& call) {
    const bool norm = call.target == "batch_norm" && call.find("running_mean") != nullptr;
    const bool drop =
        call.target.starts_with("dropout") || call.target.starts_with("feature_dropout");
    if (!norm && !drop) return call.target.starts_with("bernoulli");
    const Argument* flag = call.find(norm ? "training" : "train");
    const bool* trained = flag == nullptr ? nullptr : std::get_if<bool>(&flag->value);
    return trained == nullptr || *trained;
  });
}

/// Refuses what a graph, whose values are floating-point numbers of one type, does not do.
void check_conversion(const Translation& call) {
  if (call.given("out")) refuse("it writes to a tensor that it is given");
  const Argument* type = call.call().find("dtype");
  const auto* number = type == nullptr ? nullptr : std::get_if<int64_t>(&type->value);
  if (number != nullptr && !is_floating_type(*number))
    refuse("it makes whole numbers, truth values or complex numbers of its input");
}

/// Refuses what takes more and more memory: each call may add an axis, or many, of one element.
void check_axes(const Item& item) {
  size_t axes = 0;
  if (const auto* view = std::get_if<View>(&item)) axes = view->axes.size();
  if (const auto* weight = std::get_if<Weight>(&item)) axes = weight->shape.size();
  if (axes > kMostAxes) refuse("its result has {} axes", axes);
}

class Evaluator {
 public:
  Evaluator(const Program& program, const Extents& image)
      : program_(program), state_{.program = program} {
    state_.lookup = [this](const std::string& name) { return read(name); };
    state_.trains = program.calls.empty() || trains(program);
    begin(image);
    for (const auto& [value, tensor] : program.state) add_state(value, tensor);
  }

  void add_state(const std::string& value, const std::string& tensor) {
    objects_[value] = std::make_shared<Object>(Object{state_tensor(tensor)});
  }

  /// Translates a call, and names the parts of a result that is a list; they are none where it
  /// cannot be imported.
  void step(Call& call, bool list) {
    std::optional<Items> items = attempt(call);
    if (list) {
      const std::string name = std::exchange(call.results, {}).front();
      for (size_t i = 0; items && i < items->size(); ++i)
        call.results.push_back(fmt::format("{}_{}", name, i));
    }
    items ? store(call, std::move(*items)) : mark_broken(call);
  }

  std::optional<std::vector<int64_t>> sizes(const std::string& value) const {
    const Item& item = objects_.at(value)->item;
    if (const auto* view = std::get_if<View>(&item)) return lengths(view->axes);
    if (const auto* weight = std::get_if<Weight>(&item)) return weight->shape;
    if (const auto* noise = std::get_if<Noise>(&item)) return noise->shape;
    return std::nullopt;
  }

  Evaluation run() {
    const std::vector<bool> live = live_calls(program_);
    const std::set<const Call*> refused = refuse_state_changes(live);
    for (size_t i = 0; i < program_.calls.size(); ++i)
      if (const Call& call = program_.calls[i]; refused.contains(&call))
        mark_broken(call);
      else if (live[i])
        translate(call);
    problems_.check(program_);
    const Item result = read(program_.result);
    const View* output = std::get_if<View>(&result);
    validate(output != nullptr, "the model's output does not depend on the image");
    validate(are_plain(output->axes, state_.draft.nodes[output->node].shape),
             "the model's output is a view of {} that is neither a map (N, C, H, W) nor a vector "
             "(N, C)",
             to_string(output->axes));
    state_.draft.output = output->node;
    validate(output->node > 0, "the model returns its input");
    return {without_dead_nodes(state_.draft), state_.evaluation, state_.made};
  }

 private:
  void begin(const Extents& image) {
    const auto found = program_.sizes.find(program_.image);
    validate(found != program_.sizes.end() && found->second.size() == image.size() + 2,
             "its input has the axes {}, and images of {} have {}",
             found == program_.sizes.end() ? std::string("?")
                                           : fmt::format("{}", fmt::join(found->second, "x")),
             to_string(image), image.size() + 2);
    const std::vector<int64_t>& exported = found->second;
    validate(exported[1] > 0, "the number of channels of its input is not fixed");
    for (const int64_t size : exported)
      validate(size <= kLongestAxis, "its input has the axes {}", fmt::join(exported, "x"));
    validate(exported[0] <= kLargestBatch, "it was exported for {} images; {} are the most",
             exported[0], kLargestBatch);
    state_.batch = exported[0] > 0 ? exported[0] : 2;
    state_.exported_image.assign(exported.begin() + 2, exported.end());
    for (size_t axis = 0; axis < image.size(); ++axis)
      state_.other_size |=
          state_.exported_image[axis] >= 0 && state_.exported_image[axis] != image[axis];
    if (state_.other_size) state_.reader_strides = strides_of_readers(program_);
    const Shape shape{exported[1], image};
    state_.draft.nodes.push_back({.op = Input{shape}, .shape = result_shape(Input{shape}, {})});
    View view{0, plain_axes(state_.batch, shape)};
    for (size_t axis = 0; axis < image.size(); ++axis)
      view.axes[axis + 2][0].exported = exported[axis + 2];
    objects_[program_.image] = std::make_shared<Object>(Object{view});
  }

  /// Returns the calls that change tensors of the file.
  std::set<const Call*> refuse_state_changes(const std::vector<bool>& live) {
    std::set<const Call*> refused;
    for (const StateChange& change : state_changes(program_, live))
      if (refused.insert(change.call).second)
        problems_.add(*change.call,
                      fmt::format("it changes {}, on which the result depends, whenever the model "
                                  "is called; only batch norms keep such values here",
                                  change.tensor));
    return refused;
  }

  Weight state_tensor(const std::string& name) const {
    return {.name = name, .shape = program_.tensors->tensors().at(name).shape};
  }

  Item read(const std::string& name) const {
    const Object& object = *objects_.at(name);
    if (object.writes != object.storage->writes)
      refuse("it reads '{}' after {} has written to another view of the same tensor", name,
             object.storage->writer);
    return object.item;
  }

  /// Binds a result to a new tensor, or to a view of the storage that the first argument has.
  void bind(const Call& call, const std::string& result, Item item) {
    auto object = std::make_shared<Object>(Object{std::move(item)});
    const TableRow* row = find_row(call);
    if (const Object* self = first_argument(call); self != nullptr && row != nullptr && row->view) {
      object->storage = self->storage;
      object->writes = self->writes;
    }
    objects_[result] = std::move(object);
  }

  Object* first_argument(const Call& call) {
    if (call.arguments.empty()) return nullptr;
    const auto* self = std::get_if<Reference>(&call.arguments.front().second.value);
    return self == nullptr ? nullptr : objects_.at(self->name).get();
  }

  void write_in_place(const Call& call, Item item) {
    const auto& self = std::get<Reference>(call.arguments.front().second.value);
    const std::shared_ptr<Object> object = objects_.at(self.name);
    object->item = std::move(item);
    object->writes = ++object->storage->writes;
    object->storage->writer = call.target;
    for (const std::string& result : call.results) objects_[result] = object;
  }

  void store(const Call& call, Items items) {
    if (in_place(call) && items.size() == 1 && first_argument(call) != nullptr)
      return write_in_place(call, std::move(items.front()));
    for (size_t i = 0; i < call.results.size(); ++i)
      bind(call, call.results[i], i < items.size() ? std::move(items[i]) : Item{Broken{}});
  }

  /// Remembers the sizes of maps that another size of the image would change.
  void remember_maps(const Call& call) {
    for (const std::string& result : call.results)
      if (const auto found = program_.sizes.find(result); found != program_.sizes.end())
        if (const auto& sizes = found->second; state_.other_size && sizes.size() > 2)
          state_.exported_maps.emplace(sizes.begin() + 2, sizes.end());
  }

  /// Adds what an argument reads to the counts of weights and of everything else but numbers.
  void count_kinds(const Argument& argument, int& weights, int& others) const {
    if (const auto* list = std::get_if<Argument::List>(&argument.value))
      for (const Argument& each : *list) count_kinds(each, weights, others);
    const auto* reference = std::get_if<Reference>(&argument.value);
    if (reference == nullptr) return;
    const auto found = objects_.find(reference->name);
    const Item item = found == objects_.end() ? Item{Broken{}} : found->second->item;
    if (std::holds_alternative<Weight>(item)) ++weights;
    others += !std::holds_alternative<Weight>(item) && !as_number(item) ? 1 : 0;
  }

  /// An operator in place would change a tensor of the file.
  const TableRow* row_of(const Call& call) const {
    int weights = 0, others = 0;
    for (const auto& [name, argument] : call.arguments) count_kinds(argument, weights, others);
    const TableRow* row =
        weights > 0 && others == 0 && !in_place(call) ? find_weight_row(call) : nullptr;
    return row != nullptr ? row : find_row(call);
  }

  void translate(const Call& call) {
    std::optional<Items> items = attempt(call);
    items ? store(call, std::move(*items)) : mark_broken(call);
    remember_maps(call);
  }

  /// Returns what a call makes; nothing where it cannot be imported.
  std::optional<Items> attempt(const Call& call) {
    const TableRow* row = row_of(call);
    if (row == nullptr) {
      problems_.add_unknown(call);
      return std::nullopt;
    }
    try {
      Translation translation(state_, call);
      check_conversion(translation);
      Items items = row->translate(translation);
      for (const Item& item : items) check_axes(item);
      return items;
    } catch (const Refusal& refusal) {
      problems_.add(call, refusal.what());
    } catch (const FollowsFromAnother&) {
    }
    return std::nullopt;
  }

  void mark_broken(const Call& call) {
    for (const std::string& result : call.results)
      objects_[result] = std::make_shared<Object>(Object{Broken{}});
  }

  const Program& program_;
  ImportState state_;
  Problems problems_;
  std::map<std::string, std::shared_ptr<Object>> objects_;
};

}  // namespace

Evaluation evaluate(const Program& program, const Extents& image) {
  return Evaluator(program, image).run();
}

struct StepwiseEvaluation::State {
  State(const Program& program, const Extents& image) : evaluator(program, image) {}
  Evaluator evaluator;  // which stays where it is
};

StepwiseEvaluation::StepwiseEvaluation(const Program& program, const Extents& image)
    : state_(std::make_unique<State>(program, image)) {}

StepwiseEvaluation::~StepwiseEvaluation() = default;

void StepwiseEvaluation::add_state(const std::string& value, const std::string& tensor) {
  state_->evaluator.add_state(value, tensor);
}

void StepwiseEvaluation::step(Call& call, bool list) {
  state_->evaluator.step(call, list);
}

std::optional<std::vector<int64_t>> StepwiseEvaluation::sizes(const std::string& value) const {
  return state_->evaluator.sizes(value);
}

}  // namespace mpi4dl
