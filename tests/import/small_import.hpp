#pragma once

#include <string>

#include "graph/shape.hpp"
#include "small_program.hpp"

namespace mpi4dl::testing {

/// Returns the graph of a program as text, or why it cannot be imported.
std::string imported(const SmallProgram& program, const Extents& image = {8, 8});

void expect_has(const std::string& text, const std::string& part);
void expect_lacks(const std::string& text, const std::string& part);
void expect_imported(const std::string& text);

// Arguments of calls.

std::string ints(const std::string& list);
std::string whole(int64_t value);
std::string flag(bool value);

}  // namespace mpi4dl::testing
