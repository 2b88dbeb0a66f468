// Operators that are known, and cannot be imported: a sentence says why.
#include <array>

#include "import/table.hpp"

namespace mpi4dl {
namespace {

Items attention(Translation& /*call*/) {
  refuse(
      "it is attention over space: each pixel reads all others, so that an image cannot be cut "
      "into tiles");
}

/// Two values that are multiplied as matrices are those of attention.
Items product(Translation& call) {
  for (const char* name : {"self", "other", "mat2"})
    if (call.given(name) && std::holds_alternative<Weight>(call.item(name)))
      refuse("it multiplies by a matrix of the file, which is known as nn.Linear alone");
  return attention(call);
}

Items decomposed(Translation& /*call*/) {
  refuse("it is a part of a decomposed norm, whose statistics are values of the graph");
}

Items moved_pixels(Translation& /*call*/) {
  refuse("it moves pixels to places that are far away");
}

Items without_gradients(Translation& /*call*/) {
  refuse("no gradients go through it; freeze parameters instead, with requires_grad_(False)");
}

constexpr std::array kRefusedRows{
    TableRow{"scaled_dot_product_attention", attention},
    TableRow{"matmul", product},
    TableRow{"mm", product},
    TableRow{"bmm", product},
    TableRow{"einsum", attention},
    TableRow{"baddbmm", attention},
    TableRow{"_native_multi_head_attention", attention},
    TableRow{"_native_batch_norm_legit_functional", decomposed},
    TableRow{"_native_batch_norm_legit", decomposed},
    TableRow{"_native_batch_norm_legit_no_training", decomposed},
    TableRow{"native_group_norm", decomposed},
    TableRow{"native_layer_norm", decomposed},
    TableRow{"detach", without_gradients},
    TableRow{"torch.ops.higher_order.wrap_with_set_grad_enabled", without_gradients},
    TableRow{"roll", moved_pixels},
    TableRow{"flip", moved_pixels},
    TableRow{"grid_sampler", moved_pixels},
};

}  // namespace

std::span<const TableRow> refused_rows() {
  return kRefusedRows;
}

}  // namespace mpi4dl
