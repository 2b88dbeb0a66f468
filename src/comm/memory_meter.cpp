#include "comm/memory_meter.hpp"

#include <c10/core/Allocator.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/libtorch_version.hpp"
#include "comm/context.hpp"
#include "comm/shared_memory.hpp"

namespace mpi4dl {

class MemoryMeter::Listener : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*data*/, int64_t bytes, ReportedBytes /*total_allocated*/,
                         ReportedBytes /*total_reserved*/, c10::Device /*device*/) override {
    live += bytes;
    peak = std::max(peak, live);
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t live = 0;
  int64_t peak = 0;
};

MemoryMeter::MemoryMeter()
    : listener_(std::make_shared<Listener>()),
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

int64_t resident_bytes(const CommContext& context) {
  constexpr int64_t kKilobyte = 1024;
  int64_t bytes = context.shared_memory ? context.shared_memory->reserved_bytes() : 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:") || line.starts_with("RssFile:"))
      bytes += kKilobyte * std::stoll(line.substr(line.find(':') + 1));
  return bytes;
}

}  // namespace mpi4dl
