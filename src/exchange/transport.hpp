#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/mailbox.hpp"
#include "exchange/patch.hpp"
#include "exchange/strided.hpp"
#include "geometry/routes.hpp"

namespace mpi4dl {

/// How the routes of a redistribution travel, one way. That depends on the peers alone, so both
/// ends agree without asking:
///
///     same node:   sender --- letter: where my pixels lie --> receiver copies them itself
///                  sender <-- the letter is taken ----------- receiver has them
///     other node:  sender --- one message with all boxes ---> receiver
///
/// The mailbox keeps the memory of the pixels until the letter is taken. Few pixels, or pixels in
/// small pieces, are copied before it leaves: then nobody waits for its being taken.
class Link {
 public:
  /// Both ends make theirs in the same order.
  Link(const Communicator& comm, int tag, const std::vector<Route>& sends,
       const std::vector<Route>& receives);

  const Communicator& comm() const { return comm_; }
  int tag() const { return tag_; }
  /// By route; null where the peer is on another node.
  Outbox* outbox(size_t route) const { return outboxes_[route].get(); }
  Inbox* inbox(size_t route) const { return inboxes_[route].get(); }
  /// True where a route goes to or comes from another node.
  bool leaves_node() const;

 private:
  Communicator comm_;
  int tag_;
  std::vector<std::unique_ptr<Outbox>> outboxes_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
};

/// A route that this rank sends; the patch must stay as it is until finish(), but need not be kept.
class Outgoing {
 public:
  /// The route with this number among those that the link sends.
  Outgoing(const Link& link, size_t number, const Route& route, const Patch& from);
  void finish();
  /// True once the patch may change; never blocks.
  bool done();

 private:
  void send_message(const Link& link, const Patch& from);
  void send_letter(const Patch& from);

  const Communicator* comm_;
  const Route* route_;
  Pending message_;
  int64_t bytes_;
  Outbox* outbox_;
  std::optional<int64_t> letter_;  // which a peer on this node must take before this is done
};

/// A route that this rank receives.
class Incoming {
 public:
  /// Called once for each box, with its values in host memory.
  using Consume = std::function<void(const Box& box, const Strided& values)>;

  /// With `in_place` a message may land directly in `to`, where its box is one piece of memory.
  Incoming(const Link& link, size_t number, const Route& route, const Patch& to, bool in_place);
  /// Waits for the boxes, then hands them out in order.
  void receive(const Consume& consume);

 private:
  void read_letter(const Consume& consume);
  void unpack(std::byte* data, const Consume& consume) const;

  const Communicator* comm_;
  const Route* route_;
  c10::ScalarType type_;
  Inbox* inbox_;
  int64_t letter_ = 0;
  at::Tensor packed_;  // from another node, unless it lands in place
  Pending message_;
};

}  // namespace mpi4dl
