#include "small_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "small_archive.hpp"

namespace mpi4dl::testing {
namespace {

std::string sizes_json(const std::vector<int64_t>& sizes) {
  std::vector<std::string> all;
  for (const int64_t size : sizes) all.push_back(as("int", std::to_string(size)));
  return fmt::format("[{}]", fmt::join(all, ", "));
}

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::string value_json(const std::string& name, const std::vector<int64_t>& sizes, bool trained) {
  return fmt::format(R"("{}": {{"sizes": {}, "requires_grad": {}}})", name, sizes_json(sizes),
                     trained);
}

std::string values_json(const SmallProgram& program) {
  std::map<std::string, std::vector<int64_t>> sizes = program.sizes;
  sizes.emplace("x", std::vector<int64_t>{2, 4, 8, 8});
  std::vector<std::string> values;
  for (const auto& [name, lengths] : sizes) values.push_back(value_json(name, lengths, true));
  for (const auto& [name, tensor] : program.tensors)
    values.push_back(value_json(name, tensor.shape, tensor.kind == "parameter"));
  return fmt::format("{}", fmt::join(values, ",\n"));
}

std::string inputs_json(const SmallProgram& program) {
  std::vector<std::string> specs;
  for (const auto& [name, tensor] : program.tensors)
    specs.push_back(fmt::format(R"({{"{0}": {{"arg": {{"name": "{1}"}}, "{0}_name": "{1}"}}}})",
                                tensor.kind, name));
  specs.emplace_back(R"({"user_input": {"arg": {"as_tensor": {"name": "x"}}}})");
  return fmt::format("{}", fmt::join(specs, ",\n"));
}

std::string outputs_json(const SmallProgram& program) {
  std::vector<std::string> specs;
  for (const auto& [buffer, value] : program.changed)
    specs.push_back(
        fmt::format(R"({{"buffer_mutation": {{"arg": {{"name": "{}"}}, "buffer_name": "{}"}}}})",
                    value, buffer));
  specs.emplace_back(R"({"user_output": {"arg": {"as_tensor": {"name": "y"}}}})");
  return fmt::format("{}", fmt::join(specs, ",\n"));
}

std::string weight_json(const std::string& name, const SmallTensor& tensor) {
  return fmt::format(
      R"("{0}": {{"path_name": "{0}", "use_pickle": false, "tensor_meta": {{"dtype": 7,
      "layout": 7, "requires_grad": {1}, "sizes": {2}, "strides": {3},
      "storage_offset": {{"as_int": 0}}}}}})",
      name, tensor.kind == "parameter", sizes_json(tensor.shape),
      sizes_json(contiguous_strides(tensor.shape)));
}

std::string bytes_of(const SmallTensor& tensor) {
  int64_t elements = 1;
  for (const int64_t length : tensor.shape) elements *= length;
  const std::vector<float> values(static_cast<size_t>(elements), tensor.value);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace

std::string as(const std::string& kind, const std::string& value) {
  return fmt::format(R"({{"as_{}": {}}})", kind, value);
}
std::string tensor(const std::string& name) {
  return as("tensor", fmt::format(R"({{"name": "{}"}})", name));
}
std::string number(const std::string& name) {
  return as("sym_int", as("name", fmt::format(R"("{}")", name)));
}

std::string call(const std::string& target, const std::vector<NamedArgument>& arguments,
                 const std::string& outputs, const std::string& metadata) {
  std::string inputs;
  for (const NamedArgument& argument : arguments)
    inputs += fmt::format(R"({}{{"name": "{}", "arg": {}}})", inputs.empty() ? "" : ",",
                          argument.name, argument.value);
  return fmt::format(R"({{"target": "{}", "inputs": [{}], "outputs": [{}], "metadata": {}}})",
                     target, inputs, outputs, metadata);
}

std::string aten(const std::string& name, const std::vector<NamedArgument>& arguments,
                 const std::string& output, const std::string& module_class) {
  const std::string metadata =
      module_class.empty() ? "{}"
                           : fmt::format(R"({{"nn_module_stack": "key,part,{}"}})", module_class);
  return call(fmt::format("torch.ops.aten.{}.default", name), arguments, tensor(output), metadata);
}

std::string file_of(const SmallProgram& program) {
  const std::string model = fmt::format(
      R"({{"torch_version": "2.15.0", "verifiers": ["TRAINING"], "graph_module": {{
      "graph": {{"nodes": [{}], "tensor_values": {{{}}}}},
      "signature": {{"input_specs": [{}], "output_specs": [{}]}}}}}})",
      fmt::join(program.calls, ",\n"), values_json(program), inputs_json(program),
      outputs_json(program));
  std::vector<std::string> weights;
  std::vector<ArchiveEntry> entries{
      {"net/models/model.json", model},
      {"net/data/constants/model_constants_config.json", R"({"config": {}})"}};
  for (const auto& [name, tensor] : program.tensors) {
    weights.push_back(weight_json(name, tensor));
    entries.push_back({"net/data/weights/" + name, bytes_of(tensor)});
  }
  entries.push_back({"net/data/weights/model_weights_config.json",
                     fmt::format(R"({{"config": {{{}}}}})", fmt::join(weights, ", "))});
  return archive_bytes(entries);
}

}  // namespace mpi4dl::testing
