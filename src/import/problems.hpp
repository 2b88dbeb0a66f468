#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "import/program.hpp"

namespace mpi4dl {

/// Collects what cannot be imported, so that all of it is told at once.
class Problems {
 public:
  void add(const Call& call, const std::string& reason);
  void add_unknown(const Call& call);
  /// Throws UsageError with a sentence for each kind of problem, if there are any.
  void check(const Program& program) const;

 private:
  struct Problem {
    std::string target, reason, first;
    int count = 0;
  };
  std::vector<Problem> problems_;
  std::map<std::pair<std::string, std::string>, size_t> places_;
};

}  // namespace mpi4dl
