#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/formula.hpp"
#include "import/axes.hpp"

namespace mpi4dl {

// What a name of the program stands for while the graph is made.

/// Stands for what could not be imported, or was made of such.
struct Broken {};

/// Is a value of the graph, as PyTorch sees it.
struct View {
  int node = 0;
  Axes axes;
};

/// Is a tensor of the file, perhaps in another shape, or what was computed: a constant, or a
/// formula over tensors of the file.
struct Weight {
  std::string name;
  std::vector<int64_t> shape;
  at::Tensor value = {};  ///< of a constant; undefined for a tensor of the file
  std::optional<Formula> formula = {};
};

/// Is random numbers of which a mask for dropout is made.
struct Noise {
  enum class Stage { empty, uniform, shifted, mask };
  std::vector<int64_t> shape;
  Stage stage = Stage::empty;
  double keep = 1;   ///< the probability of a 1; of shifted numbers, what was added to them
  double scale = 1;  ///< by which the mask was multiplied
  int number = 0;    ///< of the random numbers, which are the same wherever they are read
};

using Item = std::variant<Broken, bool, int64_t, double, View, Weight, Noise>;
using Items = std::vector<Item>;

}  // namespace mpi4dl
