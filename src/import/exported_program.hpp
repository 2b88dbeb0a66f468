#pragma once

#include <string>

#include "import/program.hpp"

namespace mpi4dl {

/// Reads what torch.export.save wrote, from PyTorch 2.5 on. Nothing in the file is executed, and no
/// object of Python is made: an archive's directory, JSON, raw values and, before PyTorch 2.9, the
/// pickle of a state_dict are parsed, and everything else is left alone. Throws Error that names
/// the file.
Program read_exported_program(const std::string& path);

/// Reads a program in the form that an exported one has in JSON, with the keys "model", "weights"
/// and "constants", whose tensors lie in an archive. Throws Error or what the JSON reader throws.
Program read_described_program(const std::string& description, const ZipArchive& archive);

}  // namespace mpi4dl
