#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/strided.hpp"
#include "comm/node/descriptor_queue.hpp"
#include "exchange/redistribution.hpp"
#include "geometry/routes.hpp"

namespace mpi4dl {

/// Carries the routes of a redistribution, one way. How depends on the peers alone, so both ends
/// agree without asking:
///
///     same node:   sender --- descriptor: where my pixels lie --> receiver copies them itself
///                  sender <-- acknowledgement ------------------- receiver has them
///     other node:  sender --- messages with boxes --------------> receiver
///
/// A message has all boxes of a route if they are small; large boxes are cut along rows, so that
/// whole rows leave from where they lie, and others are packed while they fit into a cache.
///
/// The descriptor queue keeps the memory of the pixels alive until the slot is acknowledged. Few
/// pixels, or pixels in small pieces, are copied before it is posted: then nobody waits for that.
class Link {
 public:
  /// A message has boxes that travel together.
  struct Message {
    std::vector<Box> boxes;
    int64_t elements = 0;
  };

  /// Ranks make the two ends of their links in the same order.
  Link(const Communicator& comm, int tag, const std::vector<Route>& sends,
       const std::vector<Route>& receives, Transport within_node);

  const Communicator& comm() const { return comm_; }
  int tag() const { return tag_; }
  /// Each route has a queue; null where the peer is on another node.
  DescriptorSender* sender(size_t route) const { return senders_[route].get(); }
  DescriptorReceiver* receiver(size_t route) const { return receivers_[route].get(); }
  /// Each route has messages; none where the peer is on this node.
  const std::vector<Message>& outgoing(size_t route) const { return outgoing_[route]; }
  const std::vector<Message>& incoming(size_t route) const { return incoming_[route]; }
  /// Returns true where a route goes to or comes from another node.
  bool leaves_node() const;

 private:
  Communicator comm_;
  int tag_;
  std::vector<std::unique_ptr<DescriptorSender>> senders_;
  std::vector<std::unique_ptr<DescriptorReceiver>> receivers_;
  std::vector<std::vector<Message>> outgoing_, incoming_;
};

/// Sends a route; the patch must stay as it is until finish(), but need not be kept.
class Outgoing {
 public:
  /// The route has this number among those that the link sends.
  Outgoing(const Link& link, size_t number, const Route& route, const Patch& from);
  void finish();
  /// Returns true once the patch may change; never blocks.
  bool done();

 private:
  void send_messages(const Link& link, const std::vector<Link::Message>& messages,
                     const Patch& from);
  void post_descriptor(const Patch& from);

  const Communicator* comm_;
  const Route* route_;
  std::vector<Pending> messages_;
  int64_t bytes_;
  DescriptorSender* queue_;
  std::optional<int64_t> slot_;  // which a peer on this node must acknowledge before this is done
};

/// Receives a route.
class Incoming {
 public:
  /// It is called once for each box, with its values in host memory.
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
  void read_descriptor(const Consume& consume);
  void unpack(const std::vector<Box>& boxes, std::byte* data, const Consume& consume) const;

  const Communicator* comm_;
  const Route* route_;
  c10::ScalarType type_;
  DescriptorReceiver* queue_;
  int64_t slot_ = 0;
  std::vector<Arrival> arrivals_;  // from another node
};

}  // namespace mpi4dl
