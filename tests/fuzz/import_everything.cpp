#include "import_everything.hpp"

#include <ATen/core/Tensor.h>

#include <cstdlib>

#include "base/error.hpp"
#include "graph/text.hpp"
#include "import/imported_model.hpp"
#include "memory_file.hpp"

namespace mpi4dl::fuzz {
namespace {

constexpr int64_t kAnyLength = 40;

void import_at(const std::string& path, const Extents& image) {
  const ImportedModel model = import_model(path, {.image = image});
  const std::string text = to_text(model.graph);
  if (to_text(parse_graph(text)) != text) std::abort();
  for (const auto& [name, info] : model.weights->tensors())
    if (model.weights->read(name).sizes() != at::IntArrayRef(info.shape)) std::abort();
  for (const auto& [name, info] : model.state->tensors()) model.state->read(name);
}

}  // namespace

void import_everything(const std::string& bytes) {
  const MemoryFile file(bytes);
  try {
    Extents image = exported_image_size(file.path());
    for (int64_t& length : image) length = length < 0 ? kAnyLength : length;
    Extents other = image;
    for (int64_t& length : other) length += 8;
    import_at(file.path(), image);
    import_at(file.path(), other);
  } catch (const Error&) {
  }
}

}  // namespace mpi4dl::fuzz
