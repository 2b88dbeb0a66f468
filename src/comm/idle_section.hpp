#pragma once

#include <ATen/record_function.h>

#include <chrono>

#include "comm/context.hpp"

namespace mpi4dl {

/// Adds its own life time to one kind of this rank's idle time. Sections lie within each other: an
/// exchange waits for messages, a stage waits for an exchange. The outermost one knows what all of
/// it was for, so it alone counts. A profile of operators sees it as one of them.
class IdleSection {
 public:
  IdleSection(const CommContext& context, double IdleTime::* kind)
      : idle_(context.idle), kind_(kind), outermost_(!idle_.in_section) {
    if (!outermost_) return;
    idle_.in_section = true;
    record_.before(kind == &IdleTime::waiting ? "mpi4dl::waiting" : "mpi4dl::communication");
    start_ = std::chrono::steady_clock::now();
  }
  ~IdleSection() {
    if (!outermost_) return;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    idle_.*kind_ += spent.count();
    idle_.in_section = false;
  }
  IdleSection(const IdleSection&) = delete;
  IdleSection& operator=(const IdleSection&) = delete;

 private:
  IdleTime& idle_;
  double IdleTime::* kind_;
  bool outermost_;
  at::RecordFunction record_{at::RecordScope::USER_SCOPE};
  std::chrono::steady_clock::time_point start_;
};

}  // namespace mpi4dl
