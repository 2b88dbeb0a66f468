#include "exchange/transport.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/memory_units.hpp"
#include "comm/shared_memory.hpp"

namespace mpi4dl {
namespace {

/// What a letter says: where pixels lie in their owner's shared memory.
struct Whereabouts {
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

/// Enough for a message to cost much more than its start, and little enough that what was packed
/// is still in a cache when it leaves: 128 KiB of float32.
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

/// The only box of a message, if its pixels are one piece of memory that MPI can use directly.
std::optional<Strided> one_piece(const Link::Message& message, const Patch& patch,
                                 const CommContext& context) {
  if (message.boxes.size() != 1 || !patch.data.is_cpu() || context.stage_through_host)
    return std::nullopt;
  const Strided values = strided(patch, message.boxes[0]);
  return is_packed(values) ? std::optional(values) : std::nullopt;
}

/// Memory for messages, handed out from its start on; one allocation for all of a route.
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
  constexpr int64_t kFew = int64_t{8} * 1024, kFewInPieces = int64_t{64} * 1024;
  const int64_t bytes = bytes_on(route, from);
  if (bytes <= kFew) return true;
  const auto in_pieces = [&](const Box& box) { return row_bytes(strided(from, box)) < kCacheLine; };
  return bytes <= kFewInPieces && std::ranges::any_of(route.boxes, in_pieces);
}

void pack(const std::vector<Box>& boxes, const Patch& from, std::byte* data) {
  for (const Box& box : boxes) {
    const Strided room = packed(data, box, from.data.scalar_type());
    if (from.data.is_cpu()) {
      copy(room, strided(from, box));
    } else {
      as_tensor(room).copy_(from.view(box));
    }
    data += bytes_of(room).size();
  }
}

Whereabouts describe(const Patch& from, int64_t offset) {
  Whereabouts where{.packed = 0, .offset = offset};
  for (int axis = 0; axis < from.box.axes(); ++axis) {
    where.begin[axis] = from.box[axis].begin;
    where.stride[axis] = from.data.stride(axis);
  }
  return where;
}

Strided locate(const Whereabouts& where, std::byte* data, const Box& box, c10::ScalarType type) {
  Strided view{.axes = box.axes(), .type = type, .stride = where.stride};
  int64_t offset = 0;
  for (int axis = 0; axis < box.axes(); ++axis) {
    view.shape[axis] = box[axis].length();
    offset += (box[axis].begin - where.begin[axis]) * where.stride[axis];
  }
  view.data = data + offset * static_cast<int64_t>(c10::elementSize(type));
  return view;
}

template <typename End>
std::vector<std::unique_ptr<End>> mailboxes(const Communicator& comm, int tag,
                                            const std::vector<Route>& routes,
                                            Transport within_node) {
  const auto memory =
      within_node == Transport::messages ? nullptr : comm.context().shared_memory;
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
      outboxes_(mailboxes<Outbox>(comm, tag, sends, within_node)),
      inboxes_(mailboxes<Inbox>(comm, tag, receives, within_node)) {
  const auto messages = [](const auto& ends, const std::vector<Route>& routes) {
    std::vector<std::vector<Message>> all(routes.size());
    for (size_t i = 0; i < routes.size(); ++i)
      if (!ends[i]) all[i] = messages_of(routes[i]);
    return all;
  };
  outgoing_ = messages(outboxes_, sends);
  incoming_ = messages(inboxes_, receives);
}

bool Link::leaves_node() const {
  const auto far = [](const auto& end) { return !end; };
  return std::ranges::any_of(outboxes_, far) || std::ranges::any_of(inboxes_, far);
}

Outgoing::Outgoing(const Link& link, size_t number, const Route& route, const Patch& from)
    : comm_(&link.comm()),
      route_(&route),
      bytes_(bytes_on(route, from)),
      outbox_(link.outbox(number)) {
  Traffic& sent = comm_->context().sent;
  sent.messages += 1;
  sent.bytes += bytes_;
  if (outbox_ != nullptr) {
    send_letter(from);
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
    pack(messages[i].boxes, from, packed.data());
    messages_.push_back(comm_->send(packed, memory.owner(), route_->peer, link.tag()));
  }
}

void Outgoing::send_letter(const Patch& from) {
  SharedMemory& memory = *comm_->context().shared_memory;
  const bool small = worth_packing(*route_, from);
  const auto offset = memory.offset_of(from.data);
  const auto post = [&](const Whereabouts& where, std::shared_ptr<void> pixels) {
    return outbox_->post(std::as_bytes(std::span(&where, 1)), std::move(pixels));
  };
  if (offset && !small) {
    letter_ = post(describe(from, *offset), std::make_shared<at::Tensor>(from.data));
    return;
  }
  const std::shared_ptr<std::byte> copies = memory.allocate(bytes_);
  pack(route_->boxes, from, copies.get());
  const int64_t letter = post({.packed = 1, .offset = *memory.offset_of(copies.get())}, copies);
  if (!small) letter_ = letter;  // so that nobody sends ever more to a rank that does not read
}

bool Outgoing::done() {
  return std::ranges::all_of(messages_, [](Pending& message) { return message.ready(); }) &&
         (!letter_ || outbox_->taken(*letter_));
}

void Outgoing::finish() {
  for (Pending& message : messages_) message.finish();
  if (!letter_) return;
  comm_->await(
      [this] { return outbox_->taken(*letter_); },
      [this] { return WaitReason{"copy", bytes_, comm_->world_rank(route_->peer), nullptr}; });
}

Incoming::Incoming(const Link& link, size_t number, const Route& route, const Patch& to,
                   bool in_place)
    : comm_(&link.comm()),
      route_(&route),
      type_(to.data.scalar_type()),
      inbox_(link.inbox(number)) {
  if (inbox_ != nullptr) {
    letter_ = inbox_->expect();
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
           comm_->receive(bytes_of(*pieces[i]), std::make_shared<at::Tensor>(to.data),
                          route_->peer, link.tag())});
      continue;
    }
    const std::span<std::byte> packed = memory.next(messages[i].elements * width);
    arrivals_.push_back({&messages[i], packed.data(),
                         comm_->receive(packed, memory.owner(), route_->peer, link.tag())});
  }
}

void Incoming::receive(const Consume& consume) {
  if (inbox_ != nullptr) read_letter(consume);
  for (Arrival& arrival : arrivals_) {
    arrival.pending.finish();
    if (arrival.packed != nullptr) unpack(arrival.message->boxes, arrival.packed, consume);
  }
}

void Incoming::read_letter(const Consume& consume) {
  const int peer = comm_->world_rank(route_->peer);
  comm_->await([this] { return !inbox_->find(letter_).empty(); },
               [&] {
                 const auto width = static_cast<int64_t>(c10::elementSize(type_));
                 return WaitReason{"receive", route_->elements() * width, peer, nullptr};
               });
  Whereabouts where;
  std::memcpy(&where, inbox_->find(letter_).data(), sizeof(where));
  std::byte* data = comm_->context().shared_memory->address(peer, where.offset);
  if (where.packed != 0) {
    unpack(route_->boxes, data, consume);
  } else {
    for (const Box& box : route_->boxes) consume(box, locate(where, data, box, type_));
  }
  inbox_->take(letter_);
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
