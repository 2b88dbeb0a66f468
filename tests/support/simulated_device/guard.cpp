#include <c10/core/Stream.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include "support/simulated_device.hpp"
#include "support/simulated_device/libtorch.hpp"
#include "support/simulated_device/memory.hpp"
#include "support/simulated_device/order.hpp"
#include "support/simulated_device/settings.hpp"
#include "support/simulated_device/waits.hpp"

namespace mpi4dl::simulated {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

thread_local c10::DeviceIndex the_device = 0;

/// A thread has its own, as with CUDA. libtorch's autograd gives its threads the stream of the
/// thread that waits for them; 1.13 does so for CUDA alone, so there all threads have one.
using Streams = std::array<std::atomic<c10::StreamId>, 16>;
#if TORCH_VERSION_MAJOR >= 2
thread_local Streams the_streams{};
#else
Streams the_streams{};
#endif
std::array<std::atomic<int>, 16> streams_given_out{};

struct Event {
  Clock after;
  bool asked = false;
};

c10::DeviceIndex index(const c10::Device& device) {
  return device.has_index() ? device.index() : the_device;
}

c10::Stream stream_of(const c10::Device& device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, simulated::device(index(device)), id);
}

class Guard final : public GuardInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(settings().devices);
  }

  c10::Device getDevice() const override { return simulated::device(the_device); }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    expect_device(index(device));
    the_device = index(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    the_device = index(device);
  }

  c10::Stream getStream(c10::Device device) const noexcept override {
    return stream_of(device, the_streams[index(device)]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(device, 0); }
  /// Streams are given out again after some, as CUDA's are.
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high_priority*/) const override {
    const int given_out = streams_given_out[index(device)]++;
    return stream_of(device, 1 + given_out % (kStreamsOfDevice - 1));
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return stream_of(stream.device(), the_streams[stream.device_index()].exchange(stream.id()));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Event;
    *static_cast<Event*>(*event) = {Order::instance().after(agent_of(stream)), false};
  }
  void block(void* event, const c10::Stream& stream) const override {
    Order::instance().block(agent_of(stream), static_cast<Event*>(event)->after);
  }
  bool queryEvent(void* event) const override {
    auto& [after, asked] = *static_cast<Event*>(event);
    if (!std::exchange(asked, true) && !Order::instance().host_knows(after)) return false;
    host_was_told(after);
    return true;
  }
  void synchronizeEvent(void* event) const override {
    host_waits_for(static_cast<Event*>(event)->after);
  }
  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);
  }

  bool queryStream(const c10::Stream& stream) const override {
    const Clock now = Order::instance().after(agent_of(stream));
    if (first_question(agent_of(stream), now) && !Order::instance().host_knows(now)) return false;
    host_was_told(now);
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    host_waits_for(Order::instance().after(agent_of(stream)));
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    Clock all;
    for (int id = 0; id < kStreamsOfDevice; ++id)
      all.learn(Order::instance().after(agent_of(stream_of(simulated::device(device), id))));
    host_waits_for(all);
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    if (data.get() != nullptr) Memory::instance().record_user(data.get(), agent_of(stream));
  }

 private:
  static bool first_question(Agent stream, const Clock& now) {
    static std::mutex mutex;
    static std::map<Agent, Clock>& asked = *new std::map<Agent, Clock>;
    const std::lock_guard lock(mutex);
    if (asked[stream].knows(now)) return false;
    asked[stream] = now;
    return true;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

/// Tests on a real device leave it the only accelerator of libtorch, which expects one.
bool beside_a_real_device() {
  const char* place = std::getenv("MPI4DL_TEST_ON");
  return place != nullptr && std::string_view(place).starts_with("cuda");
}

[[maybe_unused]] const bool registered = [] {
  if (!beside_a_real_device()) become_the_accelerator();
  return true;
}();

}  // namespace

c10::Device device(int index) {
  return {kType, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace mpi4dl::simulated
