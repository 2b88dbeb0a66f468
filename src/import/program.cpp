#include "import/program.hpp"

#include <algorithm>

namespace mpi4dl {

const Argument* Call::find(const std::string& name) const {
  for (const auto& [known, argument] : arguments)
    if (known == name) return argument.none() ? nullptr : &argument;
  return nullptr;
}

}  // namespace mpi4dl
