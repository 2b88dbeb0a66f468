#include "backend/libtorch_warnings.hpp"

#include <cstdio>
#include <set>
#include <string>

#include "memory/libtorch_version.hpp"

namespace mpi4dl {
namespace {

class WarningsOnce final : public WarningHandler {
 public:
  explicit WarningsOnce(bool first_rank) : first_rank_(first_rank) {}

 private:
  void warn(const std::string& sentence) override {
    if (!first_rank_ || !said_.insert(sentence).second) return;
    std::fprintf(stderr, "libtorch warns: %s\n", sentence.c_str());
  }

  const bool first_rank_;
  std::set<std::string> said_;
};

}  // namespace

void warn_once(bool first_rank) {
  // libtorch may warn until the very end.
  set_warning_handler(*new WarningsOnce(first_rank));  // NOLINT: kept for ever
}

}  // namespace mpi4dl
