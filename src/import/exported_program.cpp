#include "import/exported_program.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "import/exported_tensors.hpp"
#include "storage/bounded_json.hpp"

namespace mpi4dl {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostModelBytes = int64_t{128} << 20;
constexpr size_t kMostCalls = 200'000, kMostArguments = 64;
constexpr size_t kLongestModule = 1024;
constexpr int64_t kDeepestModule = 64;

Reference reference(const Json& tensor) {
  return {tensor.at("name").get<std::string>()};
}

Argument list_of(const Json& items, Argument (*read)(const Json&)) {
  Argument::List list;
  for (const Json& item : items) list.push_back(read(item));
  return {std::move(list)};
}

Argument read_integer(const Json& value) {
  return {whole_number(value)};
}
Argument read_float(const Json& value) {
  // Infinity and such stand as texts.
  return {value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>()};
}
Argument read_flag(const Json& value) {
  return {value.get<bool>()};
}
Argument read_tensor(const Json& value) {
  return {reference(value)};
}

/// Reads a union that is an object of one key, as the schema's arguments are.
Argument read_argument(const Json& argument);

const std::map<std::string_view, Argument (*)(const Json&)> kKinds{
    {"as_none", [](const Json&) { return Argument{}; }},
    {"as_tensor", read_tensor},
    {"as_int", read_integer},
    {"as_float", read_float},
    {"as_bool", read_flag},
    {"as_scalar_type", read_integer},
    {"as_string", [](const Json& value) { return Argument{value.get<std::string>()}; }},
    {"as_name", [](const Json& value) { return Argument{Reference{value.get<std::string>()}}; }},
    {"as_sym_int", read_argument},
    {"as_sym_float", read_argument},
    {"as_sym_bool", read_argument},
    {"as_optional_tensor", read_argument},
    {"as_tensors", [](const Json& value) { return list_of(value, read_tensor); }},
    {"as_ints", [](const Json& value) { return list_of(value, read_integer); }},
    {"as_floats", [](const Json& value) { return list_of(value, read_float); }},
    {"as_bools", [](const Json& value) { return list_of(value, read_flag); }},
    {"as_sym_ints", [](const Json& value) { return list_of(value, read_argument); }},
    {"as_sym_floats", [](const Json& value) { return list_of(value, read_argument); }},
    {"as_sym_bools", [](const Json& value) { return list_of(value, read_argument); }},
    {"as_optional_tensors", [](const Json& value) { return list_of(value, read_argument); }},
};

/// Other kinds (devices, memory formats, graphs of control flow) count as None: no operator
/// that can be imported reads them.
Argument read_argument(const Json& argument) {
  ensure(argument.is_object() && argument.size() == 1, "an argument is not of one kind");
  const auto kind = kKinds.find(argument.begin().key());
  return kind == kKinds.end() ? Argument{} : kind->second(argument.begin().value());
}

void append_names(const Argument& argument, std::vector<std::string>& names) {
  if (const auto* one = std::get_if<Reference>(&argument.value)) names.push_back(one->name);
  if (const auto* list = std::get_if<Argument::List>(&argument.value))
    for (const Argument& item : *list) append_names(item, names);
}

std::vector<std::string> names_in(const Argument& argument) {
  std::vector<std::string> names;
  append_names(argument, names);
  return names;
}

/// Reads "torch.ops.aten.conv2d.default" and "_operator.add".
void read_target(const std::string& target, Call& call) {
  constexpr std::string_view kAten = "torch.ops.aten.", kPython = "_operator.";
  if (target.starts_with(kPython)) {
    call.target = "operator." + target.substr(kPython.size());
  } else if (target.starts_with(kAten)) {
    const size_t dot = target.rfind('.');
    call.target = target.substr(kAten.size(), std::max(dot, kAten.size()) - kAten.size());
    call.overload = target.substr(dot + 1);
  } else {
    call.target = target;
  }
}

/// Takes the innermost module of "key,path,class;key,path,class"; a module that is called again has
/// an @ and a number behind its name.
void read_module(const std::string& stack, Call& call) {
  const std::string inner = stack.substr(stack.rfind(';') + 1);
  const size_t first = inner.find(','), second = inner.find(',', first + 1);
  if (first == std::string::npos || second == std::string::npos) return;
  for (size_t i = first + 1; i < second; ++i) {
    if (inner[i] == '@')
      while (i + 1 < second && inner[i + 1] != '.') ++i;
    else
      call.module += inner[i];
  }
  call.module_class = inner.substr(second + 1);
  const bool usual = call.module.size() <= kLongestModule &&
                     std::ranges::count(call.module, '.') <= kDeepestModule;
  ensure(usual, "the path of a module has {} letters and {} points", call.module.size(),
         std::ranges::count(call.module, '.'));
}

/// Returns "net.py:13", the innermost line that is not PyTorch's own.
std::string source_line(const std::string& trace) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  std::string found;
  for (size_t at = trace.find(kFile); at != std::string::npos; at = trace.find(kFile, at + 1)) {
    const size_t end = trace.find('"', at + kFile.size());
    if (end == std::string::npos) break;
    if (trace.compare(end, kLine.size(), kLine) != 0) continue;
    const std::string path = trace.substr(at + kFile.size(), end - at - kFile.size());
    if (path.find("/torch/") != std::string::npos) continue;
    const size_t number = end + kLine.size();
    found = path.substr(path.rfind('/') + 1) + ":" +
            trace.substr(number, trace.find_first_not_of("0123456789", number) - number);
  }
  return found;
}

Call read_call(const Json& node) {
  Call call;
  read_target(node.at("target").get<std::string>(), call);
  ensure(node.at("inputs").size() <= kMostArguments, "a call of {} has {} arguments", call.target,
         node.at("inputs").size());
  for (const Json& input : node.at("inputs"))
    call.arguments.emplace_back(input.at("name").get<std::string>(),
                                read_argument(input.at("arg")));
  for (const Json& output : node.at("outputs"))
    for (std::string& name : names_in(read_argument(output)))
      call.results.push_back(std::move(name));
  const Json& metadata = node.at("metadata");
  read_module(metadata.value("nn_module_stack", ""), call);
  call.source = source_line(metadata.value("stack_trace", ""));
  return call;
}

/// Throws where a value is read before it is made, or made twice.
void check_order(const Program& program) {
  std::set<std::string> made{program.image};
  for (const auto& [name, tensor] : program.state) made.insert(name);
  for (const Call& call : program.calls) {
    for (const auto& [name, argument] : call.arguments)
      for (const std::string& value : names_in(argument))
        ensure(made.contains(value), "a call of {} reads '{}' before it is made", call.target,
               value);
    for (const std::string& result : call.results)
      ensure(made.insert(result).second, "two values are named '{}'", result);
  }
  ensure(made.contains(program.result), "its result '{}' is made by no call", program.result);
}

/// Says which tensor an input of the graph is, and whether load_state_dict knows it.
struct StateInput {
  std::string value, tensor;
  bool in_state_dict;
};

StateInput state_input(const std::string& kind, const Json& spec) {
  const std::string value = reference(spec.at("arg")).name;
  if (kind == "parameter") return {value, spec.at("parameter_name"), true};
  if (kind == "buffer") return {value, spec.at("buffer_name"), spec.value("persistent", true)};
  validate(kind == "tensor_constant", "it has an input that is no tensor ({})", kind);
  return {value, spec.at("tensor_constant_name"), false};
}

std::vector<StateInput> read_inputs(const Json& specs, Program& program) {
  std::vector<StateInput> inputs;
  for (const Json& spec : specs) {
    ensure(spec.is_object() && spec.size() == 1, "an input is not of one kind");
    const std::string kind = spec.begin().key();
    if (kind != "user_input") {
      inputs.push_back(state_input(kind, spec.begin().value()));
      ensure(program.state.emplace(inputs.back().value, inputs.back().tensor).second,
             "two values are named '{}'", inputs.back().value);
      continue;
    }
    const std::vector<std::string> names = names_in(read_argument(spec.begin().value().at("arg")));
    if (names.empty()) continue;  // a number
    validate(program.image.empty(),
             "the model has several inputs, {} and {}; wrap it in a module that has one, the image",
             program.image, names.front());
    program.image = names.front();
  }
  validate(!program.image.empty(), "the model has no input");
  return inputs;
}

void read_outputs(const Json& specs, Program& program) {
  int found = 0;
  for (const Json& spec : specs) {
    if (spec.contains("buffer_mutation"))
      program.changed.push_back(spec.at("buffer_mutation").at("buffer_name").get<std::string>());
    if (!spec.contains("user_output")) continue;
    const auto names = names_in(read_argument(spec.at("user_output").at("arg")));
    if (!names.empty() && found++ == 0) program.result = names.front();
  }
  validate(found > 0, "the model has no output");
  program.more_results = found > 1;
}

void read_graph(const Json& model, Program& program) {
  const Json& graph = model.at("graph_module").at("graph");
  validate(graph.at("nodes").size() <= kMostCalls, "it has {} operators; {} are the most",
           graph.at("nodes").size(), kMostCalls);
  for (const Json& node : graph.at("nodes")) program.calls.push_back(read_call(node));
  for (const auto& [name, meta] : graph.at("tensor_values").items())
    program.sizes[name] = read_sizes(meta.at("sizes"));
}

/// Reads the tensors of one group; `requires_grad` stands in the graph too, in all versions.
void add_tensors(const ZipArchive& storages, std::map<std::string, StoredTensor> stored,
                 TensorGroup group, const Json& values, const std::vector<StateInput>& inputs,
                 Program& program) {
  for (auto& [name, tensor] : stored) tensor.in_state_dict = group == TensorGroup::weights;
  for (const StateInput& input : inputs)
    if (const auto found = stored.find(input.tensor); found != stored.end()) {
      found->second.in_state_dict = input.in_state_dict;
      found->second.trained = values.at(input.value).at("requires_grad").get<bool>();
    }
  program.tensors->add(storages, stored);
}

/// Reads a model's JSON, and its tensors by `read`, which returns those of a group and leaves the
/// archive that has them.
template <typename Read>
Program read_model(const ZipArchive& archive, const Json& model, const Read& read) {
  Program program;
  const Json verifiers = model.value("verifiers", Json::array());
  program.decomposed = std::ranges::find(verifiers, Json("TRAINING")) == verifiers.end();
  const Json& signature = model.at("graph_module").at("signature");
  const std::vector<StateInput> inputs = read_inputs(signature.at("input_specs"), program);
  read_outputs(signature.at("output_specs"), program);
  read_graph(model, program);
  check_order(program);
  program.tensors = std::make_shared<ProgramTensors>();
  for (const TensorGroup group : {TensorGroup::weights, TensorGroup::constants}) {
    ZipArchive storages = archive;
    auto stored = read(storages, group);
    add_tensors(storages, std::move(stored), group,
                model.at("graph_module").at("graph").at("tensor_values"), inputs, program);
  }
  for (const StateInput& input : inputs)
    ensure(program.tensors->tensors().contains(input.tensor), "the values of {} are not in it",
           input.tensor);
  return program;
}

std::string find_model(const ZipArchive& archive) {
  std::vector<std::string> models;
  for (const auto& [name, entry] : archive.entries()) {
    const std::string below = name.substr(name.find('/') + 1);
    if (name == "serialized_exported_program.json" ||
        (below.starts_with("models/") && below.ends_with(".json")))
      models.push_back(name);
  }
  validate(!models.empty(),
           "it is no exported program; write one with torch.export.save(torch.export.export(model, "
           "(image,)), file)");
  validate(models.size() == 1, "it holds {} models; save one alone", models.size());
  return models.front();
}

Program read_program(const std::string& path) {
  const ZipArchive archive(path);
  const std::string name = find_model(archive);
  const Json model = parse_bounded(archive.read(name, kMostModelBytes), name);
  return read_model(archive, model, read_stored_tensors);
}

}  // namespace

Program read_described_program(const std::string& description, const ZipArchive& archive) {
  const Json described = parse_bounded(description, "description");
  return read_model(archive, described.at("model"), [&](ZipArchive& /*same*/, TensorGroup group) {
    return read_tensor_config(described.at(group == TensorGroup::weights ? "weights" : "constants"),
                              /*folder=*/"");
  });
}

Program read_exported_program(const std::string& path) {
  try {
    return read_program(path);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("'{}' cannot be imported: {}", path, error.what()));
  } catch (const std::exception& error) {
    throw Error(fmt::format("'{}' is no sound exported program: {}", path, error.what()));
  }
}

}  // namespace mpi4dl
