#include "memory/memory_meter.hpp"

#include <c10/core/Allocator.h>

#include <algorithm>

#include "memory/libtorch_version.hpp"

namespace mpi4dl {

class MemoryMeter::Listener : public c10::MemoryReportingInfoBase {
 public:
  explicit Listener(c10::DeviceType device) : device_(device) {}
  void reportMemoryUsage(void* /*data*/, int64_t bytes, ReportedBytes /*total_allocated*/,
                         ReportedBytes /*total_reserved*/, c10::Device device) override {
    if (device.type() != device_) return;
    live += bytes;
    peak = std::max(peak, live);
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t live = 0;
  int64_t peak = 0;

 private:
  c10::DeviceType device_;
};

MemoryMeter::MemoryMeter(c10::DeviceType device)
    : listener_(std::make_shared<Listener>(device)),
      guard_(c10::DebugInfoKind::PROFILER_STATE, listener_) {}

int64_t MemoryMeter::live_bytes() const {
  return listener_->live;
}
int64_t MemoryMeter::peak_bytes() const {
  return listener_->peak;
}

namespace {

class Nobody : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*data*/, int64_t /*bytes*/, ReportedBytes /*total_allocated*/,
                         ReportedBytes /*total_reserved*/, c10::Device /*device*/) override {}
  bool memoryProfilingEnabled() const override { return false; }
};

}  // namespace

UnmeteredSection::UnmeteredSection()
    : guard_(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Nobody>()) {}

void report_memory(void* data, int64_t bytes) {
  if (c10::memoryProfilingEnabled())
    c10::reportMemoryUsageToProfiler(data, bytes, 0, 0, c10::Device(c10::DeviceType::CPU));
}

}  // namespace mpi4dl
