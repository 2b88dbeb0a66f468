#include "import/torchscript/forward_walk.hpp"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "import/torchscript/containers.hpp"
#include "import/torchscript/queries.hpp"
#include "import/torchscript/recorder.hpp"

namespace mpi4dl {
namespace {

namespace jit = torch::jit;
using c10::IValue;

using Values = std::vector<IValue>;
using Frame = std::unordered_map<const jit::Value*, IValue>;

constexpr int kDeepest = 200;               // of calls within calls
constexpr int64_t kMostSteps = 20'000'000;  // of loops
constexpr int kMostGuesses = 4;

/// Returns "nets.py:13" where the line is known and is not PyTorch's own.
std::string source_of(const jit::Node& node) {
  const auto range = node.sourceRange().findSourceRangeThatGenerated();
  const auto place = (range ? *range : node.sourceRange()).file_line_col();
  if (!place) return "";
  const std::string& file = std::get<0>(*place);
  if (file.empty() || file.find("/torch/") != std::string::npos) return "";
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), std::get<1>(*place));
}

/// Returns "torch.nn.modules.conv.Conv2d" of
/// "__torch__.torch.nn.modules.conv.___torch_mangle_3.Conv2d".
std::string class_name(const c10::ClassType& type) {
  constexpr std::string_view kRoot = "__torch__.", kMangle = "___torch_mangle_";
  std::string name = type.name() ? type.name()->qualifiedName() : "";
  if (name.starts_with(kRoot)) name.erase(0, kRoot.size());
  for (size_t at = name.find(kMangle); at != std::string::npos; at = name.find(kMangle))
    name.erase(at, name.find('.', at) - at + 1);
  return name;
}

std::string kind_of(const jit::Node& node) {
  const std::string kind = node.kind().toQualString();
  return kind.starts_with("aten::") ? "aten." + kind.substr(6) : kind;
}

/// Appends the tensors in a result; those of a dictionary in its order.
void append_tensors(const IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor() && value.toTensor().defined()) tensors.push_back(value.toTensor());
  if (value.isTuple())
    for (const IValue& each : value.toTupleRef().elements()) append_tensors(each, tensors);
  if (value.isList())
    for (const IValue& each : value.toList().vec()) append_tensors(each, tensors);
  if (value.isGenericDict())
    for (const auto& entry : value.toGenericDict()) append_tensors(entry.value(), tensors);
}

class Walk {
 public:
  Walk(const ModuleFile& file, const jit::Module& module, const Extents& image, int64_t channels)
      : recorder_(file, image, channels), module_(module) {
    paths_[module._ivalue().get()] = "";
    recorder_.add(tensors_of(module));
  }

  Program run() {
    std::vector<at::Tensor> results;
    try {
      const c10::optional<jit::Method> forward = module_.find_method("forward");
      validate(forward.has_value(), "it has no method forward");
      append_tensors(call(forward->function(), inputs_of(*forward), ""), results);
    } catch (const UnknownValue& value) {  // which says, when it is imported, what is in the way
      return recorder_.finish(value.name, false);
    }
    validate(!results.empty(), "the model has no output");
    const std::string result = recorder_.name_of(results.front());
    return recorder_.finish(result, results.size() > 1);
  }

  /// Lists parameters, buffers and other tensors of a module and all within it.
  static std::vector<NamedTensor> tensors_of(const jit::Module& module);

 private:
  /// Returns the module, the image and the default values of all other inputs.
  Values inputs_of(const jit::Method& forward) const;

  IValue call(const jit::Function& function, Values inputs, const std::string& source);
  void run_block(const jit::Block& block, Frame& frame);
  void run_node(const jit::Node& node, Frame& frame);
  void run_branch(const jit::Node& node, Frame& frame);
  void run_loop(const jit::Node& node, Frame& frame);
  IValue get_attribute(const jit::Node& node, const IValue& object);
  void set_attribute(const jit::Node& node, const IValue& object, const IValue& value);
  IValue constant(const jit::Node& node);
  IValue call_method(const jit::Node& node, const Values& inputs);
  /// Returns the results of an operator.
  Values apply(const jit::Node& node, const Values& inputs);
  bool is_known(const jit::Node& node, const Values& inputs) const;

  [[noreturn]] void refuse(const jit::Node& node, const std::string& reason) const;
  bool truth(const jit::Node& node, const IValue& value) const;
  Place place(const jit::Node& node) const;

  Recorder recorder_;
  jit::Module module_;
  std::map<const void*, std::string> paths_;  // of modules
  /// Says of attributes whether they were read before they were set.
  std::map<std::pair<const void*, std::string>, bool> read_first_;
  std::vector<std::pair<std::string, std::string>> modules_{{"", ""}};  // paths and classes
  std::vector<std::string> sources_;  // lines of the user's that are being called
  int64_t steps_ = 0;
};

std::vector<NamedTensor> Walk::tensors_of(const jit::Module& module) {
  std::vector<NamedTensor> tensors;
  for (const auto& [path, part] : module.named_modules()) {
    const c10::ClassType& type = *part.type();
    for (size_t i = 0; i < type.numAttributes(); ++i) {
      const IValue value = part._ivalue()->getSlot(i);
      if (!value.isTensor() || !value.toTensor().defined()) continue;
      const std::string name =
          path.empty() ? type.getAttributeName(i) : path + "." + type.getAttributeName(i);
      const bool known = type.is_parameter(i) || type.is_buffer(i);
      tensors.push_back({name, value.toTensor(), known});
    }
  }
  return tensors;
}

Values Walk::inputs_of(const jit::Method& forward) const {
  Values inputs{module_._ivalue()};
  const auto& arguments = forward.function().getSchema().arguments();
  for (size_t i = 1; i < arguments.size(); ++i) {
    const c10::Argument& argument = arguments[i];
    if (i == 1) {
      validate(argument.type()->isSubtypeOf(*c10::TensorType::get()),
               "its input {} is no tensor, but of type {}", argument.name(),
               argument.type()->str());
      inputs.emplace_back(recorder_.image());
      continue;
    }
    validate(argument.default_value().has_value(),
             "the model has several inputs, {} and {}; wrap it in a module that has one, the image",
             arguments[1].name(), argument.name());
    inputs.push_back(*argument.default_value());
  }
  validate(inputs.size() > 1, "the model has no input");
  return inputs;
}

void Walk::refuse(const jit::Node& node, const std::string& reason) const {
  const Place where = place(node);
  throw UsageError(fmt::format(
      "{} in {}{}: {}", kind_of(node), where.module.empty() ? "the model itself" : where.module,
      where.source.empty() ? "" : fmt::format(" ({})", where.source), reason));
}

Place Walk::place(const jit::Node& node) const {
  std::string source = source_of(node);
  for (size_t i = sources_.size(); source.empty() && i-- > 0;) source = sources_[i];
  return {modules_.back().first, modules_.back().second, source};
}

IValue Walk::call(const jit::Function& function, Values inputs, const std::string& source) {
  const auto* with_graph =
      jit::tryToGraphFunction(const_cast<jit::Function&>(function));  // there is only this form
  validate(with_graph != nullptr, "its method {} is not code", function.name());
  validate(sources_.size() < kDeepest, "its methods call each other more than {} deep", kDeepest);
  sources_.push_back(source);
  const std::shared_ptr<jit::Graph> graph = with_graph->graph();
  Frame frame;
  for (size_t i = 0; i < inputs.size(); ++i) frame[graph->inputs()[i]] = std::move(inputs[i]);
  run_block(*graph->block(), frame);
  sources_.pop_back();
  return frame.at(graph->outputs()[0]);
}

void Walk::run_block(const jit::Block& block, Frame& frame) {
  for (const jit::Node* node : block.nodes()) run_node(*node, frame);
}

bool Walk::truth(const jit::Node& node, const IValue& value) const {
  if (value.isBool()) return value.toBool();
  refuse(node, "its condition is not known before the image is");
}

void Walk::run_branch(const jit::Node& node, Frame& frame) {
  const jit::Block& block = *node.blocks()[truth(node, frame.at(node.input())) ? 0 : 1];
  run_block(block, frame);
  for (size_t i = 0; i < node.outputs().size(); ++i)
    frame[node.outputs()[i]] = frame.at(block.outputs()[i]);
}

void Walk::run_loop(const jit::Node& node, Frame& frame) {
  const jit::Block& body = *node.blocks()[0];
  const int64_t most = frame.at(node.inputs()[0]).toInt();
  bool more = truth(node, frame.at(node.inputs()[1]));
  Values carried;
  for (size_t i = 2; i < node.inputs().size(); ++i) carried.push_back(frame.at(node.inputs()[i]));
  for (int64_t step = 0; more && step < most; ++step) {
    if (++steps_ > kMostSteps) refuse(node, "it does not end");
    frame[body.inputs()[0]] = step;
    for (size_t i = 0; i < carried.size(); ++i) frame[body.inputs()[i + 1]] = carried[i];
    run_block(body, frame);
    more = truth(node, frame.at(body.outputs()[0]));
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = frame.at(body.outputs()[i + 1]);
  }
  for (size_t i = 0; i < carried.size(); ++i) frame[node.outputs()[i]] = carried[i];
}

/// Functions have no value; they are called by their type.
IValue Walk::constant(const jit::Node& node) {
  const auto value = jit::toIValue(node.output());
  if (!value) return {};
  if (value->isTensor() && value->toTensor().defined())
    return recorder_.constant(value->toTensor());
  return *value;
}

IValue Walk::get_attribute(const jit::Node& node, const IValue& object) {
  const std::string& name = node.s(c10::attr::name);
  const IValue value = object.toObjectRef().getAttr(name);
  read_first_.emplace(std::pair(&object.toObjectRef(), name), true);
  if (const auto found = paths_.find(&object.toObjectRef());
      value.isObject() && found != paths_.end())
    paths_.emplace(&value.toObjectRef(), found->second.empty() ? name : found->second + "." + name);
  return value;
}

/// What is computed and kept from one call to the next, where it is read before it is changed,
/// would be lost. Batch norms count their batches so, and nothing depends on that.
void Walk::set_attribute(const jit::Node& node, const IValue& object, const IValue& value) {
  const std::string& name = node.s(c10::attr::name);
  const bool was_read =
      read_first_.emplace(std::pair(&object.toObjectRef(), name), false).first->second;
  if (was_read && name != "num_batches_tracked" && recorder_.is_symbolic(value))
    refuse(node, fmt::format("it changes {} whenever the model is called, and reads it", name));
  object.toObject()->setAttr(name, value);
}

IValue Walk::call_method(const jit::Node& node, const Values& inputs) {
  const c10::ivalue::Object& object = inputs[0].toObjectRef();
  const std::string source = place(node).source;
  const auto path = paths_.find(&object);
  if (path != paths_.end()) modules_.emplace_back(path->second, class_name(*object.type()));
  const IValue result = call(object.type()->getMethod(node.s(c10::attr::name)), inputs, source);
  if (path != paths_.end()) modules_.pop_back();
  return result;
}

Values Walk::apply(const jit::Node& node, const Values& inputs) {
  if (node.maybeSchema() == nullptr || node.maybeOperator() == nullptr)
    refuse(node, "it is not known");
  try {
    if (auto answer = query(node, inputs, recorder_)) return {*answer};
    if (!is_known(node, inputs)) return recorder_.record(node, inputs, place(node));
    jit::Stack stack(inputs.begin(), inputs.end());
    node.getOperation()(stack);
    return stack;
  } catch (const UsageError& error) {
    refuse(node, error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // of an operator that was run
    refuse(node, said_by(error));
  }
}

/// Returns whether the results of an operator are known before the image is.
bool Walk::is_known(const jit::Node& node, const Values& inputs) const {
  const bool symbolic = std::ranges::any_of(
      inputs, [this](const IValue& input) { return recorder_.is_symbolic(input); });
  return symbolic ? handles_anything(node.schema()) : !makes_tensors(node, inputs);
}

void Walk::run_node(const jit::Node& node, Frame& frame) {
  using namespace c10::prim;
  const c10::Symbol kind = node.kind();
  if (kind == If) return run_branch(node, frame);
  if (kind == Loop) return run_loop(node, frame);
  if (kind == Constant) {
    frame[node.output()] = constant(node);
    return;
  }
  Values inputs;
  for (const jit::Value* input : node.inputs()) inputs.push_back(frame.at(input));
  Values results;
  if (kind == GetAttr) {
    results = {get_attribute(node, inputs[0])};
  } else if (kind == SetAttr) {
    set_attribute(node, inputs[0], inputs[1]);
  } else if (kind == CallMethod) {
    results = {call_method(node, inputs)};
  } else if (kind == CallFunction) {
    const auto function = node.inputs()[0]->type()->expect<c10::FunctionType>()->function();
    results = {call(*function, {inputs.begin() + 1, inputs.end()}, place(node).source)};
  } else if (kind == RaiseException) {
    refuse(node, fmt::format("its own code raises an error, '{}'",
                             inputs[0].isString() ? inputs[0].toStringRef() : ""));
  } else if (auto contents = handle_container(node, inputs)) {
    results = std::move(*contents);
  } else {
    results = apply(node, inputs);
  }
  for (size_t i = 0; i < node.outputs().size(); ++i) frame[node.outputs()[i]] = results.at(i);
}

/// Returns how many channels the first kernel of a module reads, in the order of its parts.
int64_t likely_channels(const jit::Module& module) {
  for (const NamedTensor& each : Walk::tensors_of(module))
    if (each.tensor.dim() >= 4 && each.tensor.requires_grad()) return each.tensor.size(1);
  return 3;
}

}  // namespace

Program walk_forward(const ModuleFile& file, jit::Module module, const Extents& image) {
  int64_t channels = likely_channels(module);
  for (int guess = 0;; ++guess) {
    try {
      return Walk(file, module, image, channels).run();
    } catch (const OtherChannels& other) {
      validate(guess < kMostGuesses, "how many channels its images have cannot be found");
      channels = other.channels;
    }
  }
}

}  // namespace mpi4dl
