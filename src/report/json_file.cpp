#include "report/json_file.hpp"

#include "base/error.hpp"
#include "storage/replacement_file.hpp"

namespace mpi4dl {

void write_json(const std::string& file, const nlohmann::ordered_json& result) try {
  replace_file(file, result.dump(2) + '\n');
} catch (const Error& error) {
  throw Error(fmt::format("the result could not be written: {}", error.what()));
}

}  // namespace mpi4dl
