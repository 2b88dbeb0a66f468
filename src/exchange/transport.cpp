#include "exchange/transport.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/backend.hpp"
#include "base/memory_units.hpp"
#include "comm/node/shared_memory.hpp"

namespace mpi4dl {
namespace {

/// Describes pixels to a peer: where they lie in their owner's shared memory.
struct RemoteDescriptor {
  int64_t packed = 0;  // 1: all boxes of the route, one after the other; 0: in their patch
  int64_t offset = 0;
  std::array<int64_t, Box::kMaxAxes> begin{};
  std::array<int64_t, Box::kMaxAxes> stride{};
};

std::span<std::byte> bytes_of(const Strided& values) {
  return {values.data, static_cast<size_t>(values.elements()) * c10::elementSize(values.type)};
}

int64_t bytes_on(const Route& route, const Patch& from) {
  return route.elements() * static_cast<int64_t>(from.data.element_size());
}

/// A message is large enough to cost much more than its start, and small enough that what was
/// packed is still in a cache when it leaves: 128 KiB of float32.
constexpr int64_t kMessageElements = int64_t{32} * 1024;

/// Cuts a box along batch and rows, whose order is that of memory, into boxes of at most `most`
/// elements; a row stays whole.
void cut(const Box& box, int64_t most, std::vector<Box>& pieces) {
  int axis = 0;
  while (axis < box.axes() && box[axis].length() == 1) axis = axis == 0 ? 2 : axis + 1;
  const bool is_row = axis > 0 && axis >= box.axes() - 1;
  if (is_row || box.elements() <= most) {
    pieces.push_back(box);
    return;
  }
  const int64_t each = box.elements() / box[axis].length();
  const int64_t step = std::max<int64_t>(1, most / each);
  for (int64_t begin = box[axis].begin; begin < box[axis].end; begin += step) {
    Box piece = box;
    piece[axis] = {begin, std::min(begin + step, box[axis].end)};
    cut(piece, most, pieces);
  }
}

std::vector<Link::Message> messages_of(const Route& route) {
  std::vector<Box> pieces;
  for (const Box& box : route.boxes) cut(box, kMessageElements, pieces);
  std::vector<Link::Message> messages;
  for (const Box& piece : pieces) {
    if (messages.empty() || messages.back().elements + piece.elements() > kMessageElements)
      messages.emplace_back();
    messages.back().boxes.push_back(piece);
    messages.back().elements += piece.elements();
  }
  return messages;
}

/// Returns the only box of a message, if its pixels are one piece of memory that MPI can use
/// directly.
std::optional<Strided> one_piece(const Link::Message& message, const Patch& patch,
                                 const CommContext& context) {
  if (message.boxes.size() != 1 || !context.backend->on_host() || context.stage_through_host)
    return std::nullopt;
  const Strided values = strided(patch, message.boxes[0]);
  return is_packed(values) ? std::optional(values) : std::nullopt;
}

/// Hands out memory for messages from its start on; one allocation serves all of a route.
class PackedMemory {
 public:
  explicit PackedMemory(int64_t bytes)
      : owner_(bytes == 0 ? nullptr
                          : std::make_shared<c10::DataPtr>(
                                c10::GetAllocator(c10::DeviceType::CPU)->allocate(bytes))),
        next_(bytes == 0 ? nullptr : static_cast<std::byte*>(owner_->get())) {}

  std::span<std::byte> next(int64_t bytes) {
    return {std::exchange(next_, next_ + bytes), static_cast<size_t>(bytes)};
  }
  const std::shared_ptr<c10::DataPtr>& owner() const { return owner_; }

 private:
  std::shared_ptr<c10::DataPtr> owner_;
  std::byte* next_;
};

/// Few pixels are copied sooner than a peer says that it has them. And rows of fewer bytes than a
/// cache line share it with pixels that their owner writes, so a peer that reads them one by one
/// waits for each.
bool worth_packing(const Route& route, const Patch& from) {
  constexpr int64_t kSmall = int64_t{8} * 1024, kSmallInPieces = int64_t{64} * 1024;
  const int64_t bytes = bytes_on(route, from);
  if (bytes <= kSmall) return true;
  const auto in_pieces = [&](const Box& box) { return row_bytes(strided(from, box)) < kCacheLine; };
  return bytes <= kSmallInPieces && std::ranges::any_of(route.boxes, in_pieces);
}

RemoteDescriptor describe(const Patch& from, int64_t offset) {
  RemoteDescriptor descriptor{.packed = 0, .offset = offset};
  for (int axis = 0; axis < from.box.axes(); ++axis) {
    descriptor.begin[axis] = from.box[axis].begin;
    descriptor.stride[axis] = from.data.stride(axis);
  }
  return descriptor;
}

Strided locate(const RemoteDescriptor& descriptor, std::byte* data, const Box& box,
               c10::ScalarType type) {
  Strided view{.axes = box.axes(), .type = type, .stride = descriptor.stride};
  int64_t offset = 0;
  for (int axis = 0; axis < box.axes(); ++axis) {
    view.shape[axis] = box[axis].length();
    offset += (box[axis].begin - descriptor.begin[axis]) * descriptor.stride[axis];
  }
  view.data = data + offset * static_cast<int64_t>(c10::elementSize(type));
  return view;
}

template <typename End>
std::vector<std::unique_ptr<End>> queues(const Communicator& comm, int tag,
                                         const std::vector<Route>& routes, Transport within_node) {
  const CommContext& context = comm.context();
  const bool shared = within_node == Transport::shared_memory && context.backend->on_host();
  const auto memory = shared ? context.shared_memory : nullptr;
  std::vector<std::unique_ptr<End>> ends;
  for (const Route& route : routes) {
    const bool same_node = memory && memory->reaches(comm.world_rank(route.peer));
    ends.push_back(same_node ? std::make_unique<End>(comm, route.peer, tag) : nullptr);
  }
  return ends;
}

}  // namespace

Link::Link(const Communicator& comm, int tag, const std::vector<Route>& sends,
           const std::vector<Route>& receives, Transport within_node)
    : comm_(comm),
      tag_(tag),
      senders_(queues<DescriptorSender>(comm, tag, sends, within_node)),
      receivers_(queues<DescriptorReceiver>(comm, tag, receives, within_node)) {
  if (!comm.context().backend->on_host()) return;  // a device packs each route as a whole
  const auto messages = [](const auto& ends, const std::vector<Route>& routes) {
    std::vector<std::vector<Message>> all(routes.size());
    for (size_t i = 0; i < routes.size(); ++i)
      if (!ends[i]) all[i] = messages_of(routes[i]);
    return all;
  };
  outgoing_ = messages(senders_, sends);
  incoming_ = messages(receivers_, receives);
}

bool Link::leaves_node() const {
  const auto far = [](const auto& end) { return !end; };
  return std::ranges::any_of(senders_, far) || std::ranges::any_of(receivers_, far);
}

Outgoing::Outgoing(const Link& link, size_t number, const Route& route, const Patch& from)
    : comm_(&link.comm()),
      route_(&route),
      bytes_(bytes_on(route, from)),
      queue_(link.sender(number)) {
  Traffic& sent = comm_->context().sent;
  sent.messages += 1;
  sent.bytes += bytes_;
  if (queue_ != nullptr) {
    post_descriptor(from);
  } else {
    send_messages(link, link.outgoing(number), from);
  }
}

void Outgoing::send_messages(const Link& link, const std::vector<Link::Message>& messages,
                             const Patch& from) {
  std::vector<std::optional<Strided>> pieces;
  int64_t packed_elements = 0;
  for (const Link::Message& message : messages) {
    pieces.push_back(one_piece(message, from, comm_->context()));
    if (!pieces.back()) packed_elements += message.elements;
  }
  const auto width = static_cast<int64_t>(from.data.element_size());
  PackedMemory memory(packed_elements * width);
  messages_.reserve(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    if (pieces[i]) {
      messages_.push_back(comm_->send(bytes_of(*pieces[i]), std::make_shared<at::Tensor>(from.data),
                                      route_->peer, link.tag()));
      continue;
    }
    const std::span<std::byte> packed = memory.next(messages[i].elements * width);
    comm_->context().backend->pack(from, messages[i].boxes, packed.data());
    messages_.push_back(comm_->send(packed, memory.owner(), route_->peer, link.tag()));
  }
}

void Outgoing::post_descriptor(const Patch& from) {
  SharedMemory& memory = *comm_->context().shared_memory;
  const bool small = worth_packing(*route_, from);
  const auto offset = memory.offset_of(from.data);
  const auto post = [&](const RemoteDescriptor& descriptor, std::shared_ptr<void> pixels) {
    return queue_->post(std::as_bytes(std::span(&descriptor, 1)), std::move(pixels));
  };
  if (offset && !small) {
    slot_ = post(describe(from, *offset), std::make_shared<at::Tensor>(from.data));
    return;
  }
  const std::shared_ptr<std::byte> copies = memory.allocate(bytes_);
  comm_->context().backend->pack(from, route_->boxes, copies.get());
  const int64_t slot = post({.packed = 1, .offset = *memory.offset_of(copies.get())}, copies);
  if (!small) slot_ = slot;  // so that nobody sends ever more to a rank that does not read
}

bool Outgoing::done() {
  return std::ranges::all_of(messages_, [](Pending& message) { return message.ready(); }) &&
         (!slot_ || queue_->acknowledged(*slot_));
}

void Outgoing::finish() {
  for (Pending& message : messages_) message.finish();
  if (!slot_) return;
  comm_->await(
      [this] { return queue_->acknowledged(*slot_); },
      [this] { return WaitReason{"copy", bytes_, comm_->world_rank(route_->peer), nullptr}; });
}

Incoming::Incoming(const Link& link, size_t number, const Route& route, const Patch& to,
                   bool in_place)
    : comm_(&link.comm()),
      route_(&route),
      type_(to.data.scalar_type()),
      queue_(link.receiver(number)) {
  if (queue_ != nullptr) {
    slot_ = queue_->expect();
  } else {
    expect_messages(link, link.incoming(number), to, in_place);
  }
}

void Incoming::expect_messages(const Link& link, const std::vector<Link::Message>& messages,
                               const Patch& to, bool in_place) {
  std::vector<std::optional<Strided>> pieces;
  int64_t packed_elements = 0;
  for (const Link::Message& message : messages) {
    pieces.push_back(in_place ? one_piece(message, to, comm_->context()) : std::nullopt);
    if (!pieces.back()) packed_elements += message.elements;
  }
  const auto width = static_cast<int64_t>(to.data.element_size());
  PackedMemory memory(packed_elements * width);
  arrivals_.reserve(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    if (pieces[i]) {
      arrivals_.push_back(
          {&messages[i], nullptr,
           comm_->receive(bytes_of(*pieces[i]), std::make_shared<at::Tensor>(to.data), route_->peer,
                          link.tag())});
      continue;
    }
    const std::span<std::byte> packed = memory.next(messages[i].elements * width);
    arrivals_.push_back({&messages[i], packed.data(),
                         comm_->receive(packed, memory.owner(), route_->peer, link.tag())});
  }
}

void Incoming::receive(const Consume& consume) {
  if (queue_ != nullptr) read_descriptor(consume);
  for (Arrival& arrival : arrivals_) {
    arrival.pending.finish();
    if (arrival.packed != nullptr) unpack(arrival.message->boxes, arrival.packed, consume);
  }
}

void Incoming::read_descriptor(const Consume& consume) {
  const int peer = comm_->world_rank(route_->peer);
  comm_->await([this] { return !queue_->find(slot_).empty(); },
               [&] {
                 const auto width = static_cast<int64_t>(c10::elementSize(type_));
                 return WaitReason{"receive", route_->elements() * width, peer, nullptr};
               });
  RemoteDescriptor descriptor;
  std::memcpy(&descriptor, queue_->find(slot_).data(), sizeof(descriptor));
  std::byte* data = comm_->context().shared_memory->address(peer, descriptor.offset);
  if (descriptor.packed != 0) {
    unpack(route_->boxes, data, consume);
  } else {
    for (const Box& box : route_->boxes) consume(box, locate(descriptor, data, box, type_));
  }
  queue_->acknowledge(slot_);
}

void Incoming::unpack(const std::vector<Box>& boxes, std::byte* data,
                      const Consume& consume) const {
  for (const Box& box : boxes) {
    const Strided values = packed(data, box, type_);
    consume(box, values);
    data += bytes_of(values).size();
  }
}

}  // namespace mpi4dl
