// A graph as text: any bytes.
#include <cstdlib>

#include "base/error.hpp"
#include "graph/edit.hpp"
#include "graph/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t bytes) {
  using namespace mpi4dl;
  try {
    const Graph graph = parse_graph({reinterpret_cast<const char*>(data), bytes});
    const std::string text = to_text(graph);
    if (to_text(parse_graph(text)) != text) std::abort();
    flops_per_image(graph);
    const size_t axes = graph.node(0).shape.space.size();
    with_image_size(graph, Extents(axes, 37));
  } catch (const Error&) {
  }
  return 0;
}
