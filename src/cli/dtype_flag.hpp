#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace CLI {
class App;
}

namespace mpi4dl {

/// Adds --dtype: the type that a model computes with.
void add_dtype_flag(CLI::App& command, std::string& dtype);

/// Returns the type of this name.
c10::ScalarType scalar_type(const std::string& dtype);

}  // namespace mpi4dl
