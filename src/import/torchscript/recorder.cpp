#include "import/torchscript/recorder.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "import/exported_tensors.hpp"
#include "import/liveness.hpp"

namespace mpi4dl {
namespace {

namespace jit = torch::jit;
using c10::IValue;

constexpr int64_t kBatch = 2;  // so that no axis of images is taken for one of length 1
constexpr size_t kMostCalls = 200'000;

/// Returns the values that libtorch has loaded: this process opens no file.
class LoadedTensors : public ProgramTensors {
 public:
  at::Tensor read(const std::string& name) const override {
    return loaded.at(name).detach().clone(at::MemoryFormat::Contiguous);
  }
  std::map<std::string, at::Tensor> loaded;
};

LoadedTensors& loaded(const Program& program) {
  return static_cast<LoadedTensors&>(*program.tensors);
}

Argument number(const at::Tensor& tensor) {
  const at::Scalar value = tensor.item();
  if (value.isBoolean()) return {value.toBool()};
  if (value.isIntegral(/*includeBool=*/false)) return {value.toLong()};
  return {value.toDouble()};
}

Argument take(Call& call, const std::string& name) {
  for (auto& [known, argument] : call.arguments)
    if (known == name) return std::move(argument);
  return {};
}

size_t length_of(const Argument& argument) {
  const auto* list = std::get_if<Argument::List>(&argument.value);
  return list == nullptr ? 0 : list->size();
}

/// Names a convolution as torch.export does, by the number of axes and the direction.
void rename_convolution(Call& call) {
  const Argument* transposed = call.find("transposed");
  const bool back = transposed != nullptr && std::get<bool>(transposed->value);
  const size_t axes = length_of(*call.find("stride"));
  std::vector<std::pair<std::string, Argument>> arguments;
  for (const char* name : {"input", "weight", "bias", "stride", "padding", "dilation", "groups"})
    arguments.emplace_back(name, take(call, name));
  if (back) arguments.emplace_back("output_padding", take(call, "output_padding"));
  call.target = fmt::format("{}{}d", back ? "conv_transpose" : "conv", axes);
  call.arguments = std::move(arguments);
}

/// Gives operators that only TorchScript has the names of those that torch.export has for them.
void rename(Call& call) {
  if (call.target == "_convolution") rename_convolution(call);
  if (call.target == "_convolution_mode") {
    call.target = fmt::format("conv{}d", length_of(*call.find("stride")));
    call.overload = "padding";
  }
  for (auto& [name, argument] : call.arguments)
    if (auto* type = std::get_if<int64_t>(&argument.value); name == "dtype" && type != nullptr)
      *type = number_of_type(static_cast<c10::ScalarType>(*type));
  if (call.target == "split" && call.overload == "sizes") {
    call.target = "split_with_sizes";
    for (auto& [name, argument] : call.arguments)
      if (name == "split_size") name = "split_sizes";
  }
}

std::string target_of(const std::string& name) {
  if (name.starts_with("aten::")) return name.substr(6);
  std::string target = name;
  return target.replace(target.find("::"), 2, ".");
}

bool is_tensor(const c10::Argument& result) {
  return result.type()->isSubtypeOf(*c10::TensorType::get());
}

bool is_tensor_list(const c10::Argument& result) {
  return result.type()->isSubtypeOf(*c10::ListType::ofTensors());
}

/// Returns how many parts the users of a list take; throws where that is not known.
size_t parts_taken(const jit::Node& node, const std::string& name) {
  for (const jit::Use& use : node.output()->uses())
    if (use.user->kind() == c10::prim::ListUnpack) return use.user->outputs().size();
  throw UnknownValue{name};
}

}  // namespace

Recorder::Recorder(const ModuleFile& file, const Extents& image, int64_t channels) : file_(file) {
  program_.image = "image";
  program_.tensors = std::make_shared<LoadedTensors>();
  std::vector<int64_t>& sizes = program_.sizes[program_.image];
  sizes = {kBatch, channels};
  sizes.insert(sizes.end(), image.begin(), image.end());
  evaluation_ = std::make_unique<StepwiseEvaluation>(program_, image);
  image_ = stand_in(program_.image);
}

void Recorder::add(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, StoredTensor> places;
  for (const auto& [name, tensor, in_state_dict] : tensors) {
    places[name] = file_.place_of(name, tensor);
    places[name].in_state_dict = in_state_dict;
    loaded(program_).loaded[name] = tensor;
  }
  program_.tensors->add(file_.archive(), places);
  for (const auto& [name, tensor, in_state_dict] : tensors) {
    const Symbol symbol{"state." + name, name};
    if (!symbols_.emplace(tensor.unsafeGetTensorImpl(), symbol).second) continue;
    kept_.push_back(tensor);
    program_.state[symbol.name] = name;
    evaluation_->add_state(symbol.name, name);
  }
}

at::Tensor Recorder::constant(const at::Tensor& tensor) {
  if (tensor.numel() == 1) return tensor.detach().clone();
  if (find(tensor) == nullptr)
    add({{fmt::format("constant_{}", counts_["constant"]++), tensor, /*in_state_dict=*/false}});
  return tensor;
}

Recorder::Symbol* Recorder::find(const IValue& value) {
  if (!value.isTensor()) return nullptr;
  const auto found = symbols_.find(value.toTensor().unsafeGetTensorImpl());
  return found == symbols_.end() ? nullptr : &found->second;
}

const Recorder::Symbol* Recorder::find(const IValue& value) const {
  return const_cast<Recorder*>(this)->find(value);
}

bool Recorder::is_symbolic(const IValue& value) const {
  const auto any = [this](const auto& values) {
    return std::any_of(values.begin(), values.end(),
                       [this](const IValue& each) { return is_symbolic(each); });
  };
  if (value.isList()) return any(value.toList().vec());
  if (value.isTuple()) return any(value.toTupleRef().elements().vec());
  if (value.isGenericDict())
    for (const auto& entry : value.toGenericDict())
      if (is_symbolic(entry.value())) return true;
  return find(value) != nullptr;
}

std::vector<int64_t> Recorder::sizes(const at::Tensor& tensor) const {
  const Symbol* symbol = find(tensor);
  if (symbol == nullptr) return tensor.sizes().vec();
  const auto known = evaluation_->sizes(symbol->name);
  if (!known) throw UnknownValue{symbol->name};
  return *known;
}

at::Tensor Recorder::known_number(const at::Tensor& tensor) const {
  const Symbol* symbol = find(tensor);
  if (symbol == nullptr) return tensor;
  const bool known =
      !symbol->tensor.empty() && !symbol->written && tensor.numel() == 1 && !tensor.requires_grad();
  return known ? tensor.detach() : at::Tensor();
}

std::string Recorder::name_of(const at::Tensor& tensor) const {
  const Symbol* symbol = find(tensor);
  validate(symbol != nullptr, "its result does not depend on the image");
  return symbol->name;
}

Argument Recorder::argument(const IValue& value) const {
  if (value.isBool()) return {value.toBool()};
  if (value.isInt()) return {value.toInt()};
  if (value.isDouble()) return {value.toDouble()};
  if (value.isString()) return {value.toStringRef()};
  if (const Symbol* symbol = find(value)) return {Reference{symbol->name}};
  if (value.isTensor() && value.toTensor().defined()) {
    validate(value.toTensor().numel() == 1,
             "it computes with a tensor that code makes of numbers, {} of them",
             value.toTensor().numel());
    return number(value.toTensor());
  }
  Argument::List list;
  if (!value.isList()) return {};  // None, and what no operator that can be imported reads
  for (const IValue& each : value.toList().vec()) list.push_back(argument(each));
  return {std::move(list)};
}

at::Tensor Recorder::stand_in(const std::string& name) {
  kept_.push_back(at::empty({0}));
  symbols_[kept_.back().unsafeGetTensorImpl()] = {name, ""};
  return kept_.back();
}

std::string Recorder::new_name(const std::string& target) {
  std::string name = target;
  std::ranges::replace(name, '.', '_');
  const int count = counts_[name]++;
  return count == 0 ? name : fmt::format("{}_{}", name, count);
}

void Recorder::check_channels(const Call& call) const {
  const bool norm = call.target == "batch_norm", conv = call.target.starts_with("conv");
  const Argument *input = call.find("input"), *weight = call.find(norm ? "running_mean" : "weight");
  if ((!norm && !conv) || input == nullptr || weight == nullptr) return;
  const auto *map = std::get_if<Reference>(&input->value),
             *name = std::get_if<Reference>(&weight->value);
  if (map == nullptr || name == nullptr) return;
  const auto shape = evaluation_->sizes(name->name), here = evaluation_->sizes(map->name);
  if (!shape || !here || here->size() < 3 || shape->size() < (norm ? 1 : 3)) return;
  int64_t needed = norm || call.target.starts_with("conv_transpose") ? shape->at(0) : shape->at(1);
  if (const Argument* groups = call.find("groups"); groups != nullptr && needed == shape->at(1))
    if (const auto* count = std::get_if<int64_t>(&groups->value)) needed *= *count;
  const int64_t supposed = program_.sizes.at(program_.image)[1], found = here->at(1);
  if (found != needed && found > 0 && supposed * needed % found == 0)
    throw OtherChannels{supposed * needed / found};
}

std::vector<std::string> Recorder::list_results(const jit::Node& node, const Call& call) {
  if (!call.results.empty()) return call.results;
  const std::string name = new_name(call.target);
  std::vector<std::string> names;
  for (size_t i = 0; i < parts_taken(node, name); ++i)
    names.push_back(fmt::format("{}_part{}", name, i));
  return names;
}

std::vector<IValue> Recorder::record(const jit::Node& node, const std::vector<IValue>& inputs,
                                     const Place& place) {
  const c10::FunctionSchema& schema = node.schema();
  validate(program_.calls.size() < kMostCalls, "it has more than {} operators", kMostCalls);
  Call call;
  call.target = target_of(schema.name());
  call.overload = schema.overload_name().empty() ? "default" : schema.overload_name();
  call.module = place.module;
  call.module_class = place.module_class;
  call.source = place.source;
  for (size_t i = 0; i < inputs.size(); ++i)
    call.arguments.emplace_back(schema.arguments()[i].name(), argument(inputs[i]));
  rename(call);
  if (!channels_known_) {
    check_channels(call);
    channels_known_ = call.target.starts_with("conv");
  }
  std::vector<IValue> results;
  const auto& returns = schema.returns();
  if (returns.size() == 1 && is_tensor_list(returns[0])) {
    call.results = {new_name(call.target)};
    evaluation_->step(call, /*list=*/true);
    const bool broken = call.results.empty();
    call.results = list_results(node, call);
    c10::List<at::Tensor> parts;
    for (const std::string& name : call.results) parts.push_back(stand_in(name));
    if (broken) evaluation_->step(call, /*list=*/false);  // which names them, as broken ones
    results.emplace_back(parts);
  } else {
    for (const c10::Argument& result : returns) {
      validate(is_tensor(result), "{} makes a number of values, or something that is no tensor",
               call.target);
      call.results.push_back(new_name(call.target));
      results.emplace_back(stand_in(call.results.back()));
    }
    evaluation_->step(call, /*list=*/false);
  }
  if (in_place(call)) {
    Symbol* symbol = inputs.empty() ? nullptr : find(inputs[0]);
    validate(symbol != nullptr, "{} changes a number by values", call.target);
    symbol->written = true;
    results = {inputs[0]};
  }
  program_.calls.push_back(std::move(call));
  return results;
}

Program Recorder::finish(const std::string& result, bool more_results) {
  program_.result = result;
  program_.more_results = more_results;
  return std::move(program_);
}

}  // namespace mpi4dl
