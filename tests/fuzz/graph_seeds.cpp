// fuzz_graph_seeds FOLDER FILE...: writes the graphs of files of torch.export into a folder, as
// text.
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "graph/text.hpp"
#include "import/imported_model.hpp"

int main(int count, char** words) {
  using namespace mpi4dl;
  for (int i = 2; i < count; ++i) {
    const std::filesystem::path file(words[i]);
    try {
      const Graph graph = import_model(file, {.image = exported_image_size(file)}).graph;
      std::ofstream(words[1] / file.stem().replace_extension(".graph")) << to_text(graph);
    } catch (const Error&) {  // a file that is to be refused
    }
  }
}
