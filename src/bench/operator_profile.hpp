#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mpi4dl {

/// Counts libtorch's operators, and our kernels that record themselves, on this thread during its
/// life.
class OperatorProfile {
 public:
  struct Line {
    std::string name;
    int64_t calls = 0;
    double seconds = 0;  ///< without the operators that it calls
    bool moves_data = false;
  };

  OperatorProfile();
  ~OperatorProfile();
  OperatorProfile(const OperatorProfile&) = delete;
  OperatorProfile& operator=(const OperatorProfile&) = delete;

  /// Returns all operators, the most expensive first.
  std::vector<Line> lines() const;

 private:
  struct Call;
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function);
  static void end(const at::RecordFunction& function, at::ObserverContext* context);

  // Callbacks are plain functions, so they find the profile of their thread here.
  static thread_local OperatorProfile* current_;
  at::CallbackHandle handle_;
  Call* innermost_ = nullptr;
  std::map<std::string, Line> lines_;
};

}  // namespace mpi4dl
