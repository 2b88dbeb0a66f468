#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "verify/usage.hpp"

namespace mpi4dl {

/// Compares a layout with one rank. `used`, `planned`: by the layout.
nlohmann::ordered_json verification_report(const StepResult& result, const StepResult& expected,
                                           const Usage& used, const std::optional<Usage>& planned,
                                           double tolerance);

/// Prints such a report below a title.
void print_verification(const std::string& title, const nlohmann::ordered_json& report);

}  // namespace mpi4dl
