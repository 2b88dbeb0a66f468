#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace mpi4dl {

/// DeviceEvent is a moment in the work of a device.
class DeviceEvent {
 public:
  /// Marks the moment behind all that was given to the current stream of the device so far.
  explicit DeviceEvent(at::Device device);
  /// Returns true once the device has come here; never blocks.
  bool reached() const { return event_.query(); }
  /// Work that is given to a stream from now on waits for this moment.
  void block(const c10::Stream& stream) const { event_.block(stream); }

 private:
  c10::Event event_;
};

/// SideStream is a stream of a device beside the one that computes, for what travels meanwhile:
///
///     compute   ... make x ---+--- interior of the next layer ---+--- border
///     side                    +--- pack, to the host ... from the host, unpack ---+
///
/// Memory of the computing stream that it uses must be kept for it (keep), because that stream's
/// allocator would give it out again.
class SideStream {
 public:
  explicit SideStream(at::Device device);

  enum class Order {
    behind_computing,  ///< what the section does waits for all that the computing stream was given
    as_it_is,          ///< nothing more is waited for than in the sections before
  };

  /// While it lives, operators go to the side stream.
  class Section {
   public:
    explicit Section(const SideStream& side, Order order = Order::behind_computing);
    ~Section();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    const SideStream& side_;
    c10::Stream computing_;
  };

  /// What is given to the computing stream from now on comes behind all of the side stream.
  void join() const;
  void keep(const at::Tensor& tensor) const;

 private:
  c10::impl::VirtualGuardImpl guard_;
  at::Device device_;
  c10::Stream stream_;
};

}  // namespace mpi4dl
