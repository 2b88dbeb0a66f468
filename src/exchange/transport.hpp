#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.hpp"
#include "comm/shared_memory.hpp"
#include "exchange/patch.hpp"
#include "exchange/strided.hpp"
#include "geometry/routes.hpp"

namespace mpi4dl {

/// The two ends of one route of a redistribution. How it travels depends on the peers alone, so
/// both ends agree without asking:
///
///     same node:   sender --- note: where my pixels lie ---> receiver copies them itself
///                  sender <-- raises the sender's flag ----- receiver has them
///     other node:  sender --- one message with all boxes --> receiver
struct Link {
  const Communicator& comm;
  int tag;

  bool same_node(int peer) const;
};

/// Where pixels lie in their owner's shared memory: a note's content.
struct Whereabouts {
  int64_t packed = 0;  ///< 1: all boxes of the route, one after the other; 0: in their patch
  int64_t offset = 0;
  int64_t receipt = 0;  ///< the flag to raise once they are copied
  std::array<int64_t, Box::kMaxAxes> begin{};
  std::array<int64_t, Box::kMaxAxes> stride{};
};

/// A route that this rank sends; the patch must stay as it is until finish().
class Outgoing {
 public:
  Outgoing(const Link& link, const Route& route, const Patch& from);
  void finish();
  /// True once the receiver has the pixels; never blocks.
  bool done();

 private:
  void send_message(const Link& link, const Route& route, const Patch& from);
  void send_note(const Link& link, const Route& route, const Patch& from);

  const Communicator* comm_;
  const Route* route_;
  Pending message_;
  at::Tensor kept_;  // what a peer on this node reads, until
  SharedMemory::Flag receipt_;
};

/// A route that this rank receives.
class Incoming {
 public:
  /// Called once for each box, with its values in host memory.
  using Consume = std::function<void(const Box& box, const Strided& values)>;

  /// With `in_place` a message may land directly in `to`, where its box is one piece of memory.
  Incoming(const Link& link, const Route& route, const Patch& to, bool in_place);
  /// Waits for the boxes, then hands them out in order.
  void receive(const Consume& consume);

 private:
  void read_from_peer(const Consume& consume);
  void unpack(std::byte* data, const Consume& consume) const;

  const Communicator* comm_;
  const Route* route_;
  c10::ScalarType type_;
  std::shared_ptr<Whereabouts> note_;  // from a peer on this node
  at::Tensor packed_;                  // from any other, unless it lands in place
  Pending message_;
};

}  // namespace mpi4dl
