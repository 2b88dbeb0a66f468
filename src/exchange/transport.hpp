#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/mailbox.hpp"
#include "exchange/redistribution.hpp"
#include "exchange/strided.hpp"
#include "geometry/routes.hpp"

namespace mpi4dl {

/// How the routes of a redistribution travel, one way. That depends on the peers alone, so both
/// ends agree without asking:
///
///     same node:   sender --- letter: where my pixels lie --> receiver copies them itself
///                  sender <-- the letter is taken ----------- receiver has them
///     other node:  sender --- messages with boxes ----------> receiver
///
/// A message has all boxes of a route if they are small; large boxes are cut along rows, so that
/// whole rows leave from where they lie, and others are packed while they fit into a cache.
///
/// The mailbox keeps the memory of the pixels until the letter is taken. Few pixels, or pixels in
/// small pieces, are copied before it leaves: then nobody waits for its being taken.
class Link {
 public:
  /// Boxes that travel together.
  struct Message {
    std::vector<Box> boxes;
    int64_t elements = 0;
  };

  /// Both ends make theirs in the same order.
  Link(const Communicator& comm, int tag, const std::vector<Route>& sends,
       const std::vector<Route>& receives, Transport within_node);

  const Communicator& comm() const { return comm_; }
  int tag() const { return tag_; }
  /// By route; null where the peer is on another node.
  Outbox* outbox(size_t route) const { return outboxes_[route].get(); }
  Inbox* inbox(size_t route) const { return inboxes_[route].get(); }
  /// By route; none where the peer is on this node.
  const std::vector<Message>& outgoing(size_t route) const { return outgoing_[route]; }
  const std::vector<Message>& incoming(size_t route) const { return incoming_[route]; }
  /// True where a route goes to or comes from another node.
  bool leaves_node() const;

 private:
  Communicator comm_;
  int tag_;
  std::vector<std::unique_ptr<Outbox>> outboxes_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  std::vector<std::vector<Message>> outgoing_, incoming_;
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
  void send_messages(const Link& link, const std::vector<Link::Message>& messages,
                     const Patch& from);
  void send_letter(const Patch& from);

  const Communicator* comm_;
  const Route* route_;
  std::vector<Pending> messages_;
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
  struct Arrival {
    const Link::Message* message;
    std::byte* packed;  // null where it lands in place
    Pending pending;
  };
  void expect_messages(const Link& link, const std::vector<Link::Message>& messages,
                       const Patch& to, bool in_place);
  void read_letter(const Consume& consume);
  void unpack(const std::vector<Box>& boxes, std::byte* data, const Consume& consume) const;

  const Communicator* comm_;
  const Route* route_;
  c10::ScalarType type_;
  Inbox* inbox_;
  int64_t letter_ = 0;
  std::vector<Arrival> arrivals_;  // from another node
};

}  // namespace mpi4dl
