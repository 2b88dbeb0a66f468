#include "cli/dtype_flag.hpp"

#include <CLI/CLI.hpp>

namespace mpi4dl {

void add_dtype_flag(CLI::App& command, std::string& dtype) {
  const auto not_float16 = [](const std::string& type) -> std::string {
    return type == "float16" ? "float16 would need its loss scaled, which nothing here does; use "
                               "bfloat16"
                             : "";
  };
  command.add_option("--dtype", dtype, "Data type of activations and parameters")
      ->check(CLI::Validator(not_float16, ""))
      ->check(CLI::IsMember({"float64", "float32", "bfloat16"}));
}

c10::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "float64") return c10::ScalarType::Double;
  return dtype == "bfloat16" ? c10::ScalarType::BFloat16 : c10::ScalarType::Float;
}

}  // namespace mpi4dl
