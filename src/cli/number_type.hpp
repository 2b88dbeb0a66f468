#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace CLI {
class App;
}

namespace mpi4dl {

/// --dtype: the type that a model computes with.
void add_dtype_flag(CLI::App& command, std::string& dtype);
c10::ScalarType number_type(const std::string& dtype);

}  // namespace mpi4dl
