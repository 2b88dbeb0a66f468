#pragma once

#include <vector>

#include "backend/host_memory.hpp"
#include "exchange/flight_state.hpp"

namespace mpi4dl {

/// Is a redistribution between patches on devices. What goes to a peer is packed on the device into
/// one buffer; that travels through host memory, or by an MPI that takes device memory:
///
///     computing stream  .. make x --+-- what needs no halo --------------------+------+-- the rest
///     side stream                   +-- pack -- to the host    from the host --+unpack+
///     MPI                                       one event, send ... receive
///
/// MPI is in no stream's order: the device is waited for before a send, and before a receive into
/// device memory, which the allocator may have taken from a tensor that a stream still reads.
class DeviceFlight : public Redistribution::Flight::State, private Unsent {
 public:
  explicit DeviceFlight(const Journey& journey);
  ~DeviceFlight() override;

  void receive() override;
  bool received() const override { return incoming_.empty(); }
  bool sent() override;
  void finish() override;

 private:
  struct Outgoing {
    const Route* route;
    at::Tensor buffer;  // what MPI reads
    Pending message = {};
  };
  struct Incoming {
    const Route* route;
    at::Tensor buffer;  // what MPI writes
    Pending message = {};
  };
  void pack(const Journey& journey);
  void expect();
  void post();
  void await_packed() const;
  bool packed() const { return !packed_ || packed_->reached(); }
  void send() override;
  at::Tensor buffer_for(const Route& route) const;
  at::Tensor on_device(const at::Tensor& buffer) const;

  const Communicator& comm_;
  CommContext& context_;
  int tag_;
  Combine how_;
  Patch to_;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::unique_ptr<DeviceEvent> packed_;
  bool posted_ = false;  // all sends
};

}  // namespace mpi4dl
