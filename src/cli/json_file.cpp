#include "cli/json_file.hpp"

#include <fstream>

#include "base/error.hpp"

namespace mpi4dl {

void write_json(const std::string& file, const nlohmann::ordered_json& result) {
  std::ofstream out(file);
  out << result.dump(2) << '\n';
  out.close();
  ensure(out.good(), "the result could not be written to '{}'", file);
}

}  // namespace mpi4dl
