#include "cli/number_type.hpp"

#include <CLI/CLI.hpp>

namespace mpi4dl {

void add_dtype_flag(CLI::App& command, std::string& dtype) {
  command.add_option("--dtype", dtype, "Type of numbers")
      ->check(CLI::IsMember({"float64", "float32", "bfloat16"}));
}

c10::ScalarType number_type(const std::string& dtype) {
  if (dtype == "float64") return c10::ScalarType::Double;
  return dtype == "bfloat16" ? c10::ScalarType::BFloat16 : c10::ScalarType::Float;
}

}  // namespace mpi4dl
