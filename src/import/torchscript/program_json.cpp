#include "import/torchscript/program_json.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "import/exported_tensors.hpp"

namespace mpi4dl {
namespace {

using Json = nlohmann::json;

constexpr int kStrided = 7;  // PyTorch's number of a layout

Json tensor_argument(const std::string& name) {
  return {{"as_tensor", {{"name", name}}}};
}

/// Infinity and such stand as texts.
Json real(double value) {
  return std::isfinite(value) ? Json(value) : Json(std::to_string(value));
}

Json list_argument(const Argument::List& list);

Json argument(const Argument& argument) {
  if (const auto* value = std::get_if<bool>(&argument.value)) return {{"as_bool", *value}};
  if (const auto* value = std::get_if<int64_t>(&argument.value)) return {{"as_int", *value}};
  if (const auto* value = std::get_if<double>(&argument.value)) return {{"as_float", real(*value)}};
  if (const auto* value = std::get_if<std::string>(&argument.value)) return {{"as_string", *value}};
  if (const auto* value = std::get_if<Reference>(&argument.value))
    return tensor_argument(value->name);
  if (const auto* value = std::get_if<Argument::List>(&argument.value))
    return list_argument(*value);
  return {{"as_none", true}};
}

template <typename T>
bool all_are(const Argument::List& list) {
  return std::ranges::all_of(
      list, [](const Argument& each) { return std::holds_alternative<T>(each.value); });
}

/// Lists of one kind have a key of their own; others are lists of arguments.
Json list_argument(const Argument::List& list) {
  Json items = Json::array();
  const bool whole = all_are<int64_t>(list), floats = all_are<double>(list);
  for (const Argument& each : list) {
    if (whole)
      items.push_back(std::get<int64_t>(each.value));
    else if (floats)
      items.push_back(real(std::get<double>(each.value)));
    else
      items.push_back(argument(each));
  }
  return {{whole ? "as_ints" : floats ? "as_floats" : "as_optional_tensors", items}};
}

Json node(const Call& call) {
  Json inputs = Json::array(), outputs = Json::array(), metadata = Json::object();
  for (const auto& [name, value] : call.arguments)
    inputs.push_back({{"name", name}, {"arg", argument(value)}});
  for (const std::string& result : call.results) outputs.push_back(tensor_argument(result));
  metadata["nn_module_stack"] = "," + call.module + "," + call.module_class;
  if (const size_t colon = call.source.rfind(':'); colon != std::string::npos)
    metadata["stack_trace"] =
        "File \"" + call.source.substr(0, colon) + "\", line " + call.source.substr(colon + 1);
  const bool aten = call.target.find('.') == std::string::npos;
  return {{"target", aten ? "torch.ops.aten." + call.target + "." + call.overload : call.target},
          {"inputs", inputs},
          {"outputs", outputs},
          {"metadata", metadata}};
}

Json sizes(const std::vector<int64_t>& lengths) {
  Json all = Json::array();
  for (const int64_t length : lengths) all.push_back({{"as_int", length}});
  return all;
}

Json graph(const Program& program) {
  Json nodes = Json::array(), values = Json::object();
  for (const Call& call : program.calls) nodes.push_back(node(call));
  for (const auto& [value, lengths] : program.sizes) values[value] = {{"sizes", sizes(lengths)}};
  for (const auto& [value, tensor] : program.state) {
    const StoredTensor& stored = program.tensors->stored(tensor);
    values[value] = {{"sizes", sizes(stored.info.shape)}, {"requires_grad", stored.trained}};
  }
  return {{"nodes", nodes}, {"tensor_values", values}};
}

Json input(const Program& program, const std::string& value, const std::string& tensor) {
  const Json arg = {{"name", value}};
  if (program.tensors->stored(tensor).in_state_dict)
    return {{"parameter", {{"arg", arg}, {"parameter_name", tensor}}}};
  return {{"tensor_constant", {{"arg", arg}, {"tensor_constant_name", tensor}}}};
}

Json signature(const Program& program) {
  Json inputs = Json::array(), outputs = Json::array();
  for (const auto& [value, tensor] : program.state) inputs.push_back(input(program, value, tensor));
  inputs.push_back({{"user_input", {{"arg", tensor_argument(program.image)}}}});
  for (int i = 0; i < (program.more_results ? 2 : 1); ++i)
    outputs.push_back({{"user_output", {{"arg", tensor_argument(program.result)}}}});
  return {{"input_specs", inputs}, {"output_specs", outputs}};
}

Json description(const StoredTensor& tensor) {
  return {{"path_name", tensor.storage},
          {"use_pickle", false},
          {"tensor_meta",
           {{"dtype", number_of_type(tensor.info.type)},
            {"layout", kStrided},
            {"sizes", sizes(tensor.info.shape)},
            {"strides", sizes(tensor.strides)},
            {"storage_offset", {{"as_int", tensor.offset}}},
            {"requires_grad", tensor.trained}}}};
}

Json config(const Program& program, bool in_state_dict) {
  Json all = Json::object();
  for (const auto& [name, info] : program.tensors->tensors())
    if (const StoredTensor& stored = program.tensors->stored(name);
        stored.in_state_dict == in_state_dict)
      all[name] = description(stored);
  return {{"config", all}};
}

}  // namespace

std::string describe(const Program& program) {
  const Json all = {
      {"model",
       {{"verifiers", {"TRAINING"}},
        {"graph_module", {{"graph", graph(program)}, {"signature", signature(program)}}}}},
      {"weights", config(program, true)},
      {"constants", config(program, false)}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mpi4dl
