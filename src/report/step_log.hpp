#pragma once

#include <optional>
#include <string>

#include "base/append_file.hpp"
#include "report/step_record.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// Writes a line of JSON for each step to a file; nothing where none is wanted.
class StepLog {
 public:
  explicit StepLog(const std::string& file);

  void write(const StepRecord& record, const StepReport& report);

 private:
  std::optional<AppendFile> file_;
};

}  // namespace mpi4dl
