#pragma once

#include <fstream>
#include <string>

#include "comm/communicator.hpp"
#include "report/progress.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// A line of JSON for each step in a file that the first rank writes; nothing where no file is
/// wanted.
class StepLog {
 public:
  StepLog(const std::string& file, bool writes);

  /// Collective over the world.
  void write(const StepRecord& record, const StepReport& report, const Communicator& world);

 private:
  bool wanted_;
  std::ofstream out_;  // on the first rank
};

}  // namespace mpi4dl
