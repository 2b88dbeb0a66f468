#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mpi4dl::testing {

// Programs of a few calls, written as the JSON that torch.export leaves in a file.

/// Returns an argument of a kind: as("ints", "[1, 2]").
std::string as(const std::string& kind, const std::string& value);
/// Returns a reference to a value.
std::string tensor(const std::string& name);
/// Returns a reference to a number that is computed from sizes.
std::string number(const std::string& name);

/// Is what a call is given.
struct NamedArgument {
  std::string name, value;
};

/// Returns a call that makes one value, or several.
std::string call(const std::string& target, const std::vector<NamedArgument>& arguments,
                 const std::string& outputs, const std::string& metadata = "{}");
/// Returns a call of one of PyTorch's operators, of a module where its class is given.
std::string aten(const std::string& name, const std::vector<NamedArgument>& arguments,
                 const std::string& output = "y", const std::string& module_class = "");

/// Is a tensor of a program's file, with one number everywhere.
struct SmallTensor {
  std::vector<int64_t> shape;
  std::string kind = "parameter";  ///< or "buffer"
  float value = 0.5F;
};

/// Is a program whose image is x and whose result is y.
struct SmallProgram {
  std::vector<std::string> calls;
  std::map<std::string, SmallTensor> tensors = {};
  std::map<std::string, std::vector<int64_t>> sizes = {};  ///< of values; x is 2x4x8x8 otherwise
  std::map<std::string, std::string> changed = {};         ///< buffers, by their new values
};

/// Returns the bytes of the file that torch.export.save would write.
std::string file_of(const SmallProgram& program);

}  // namespace mpi4dl::testing
