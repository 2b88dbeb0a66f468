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

std::byte* data_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

int64_t bytes_on(const Route& route, const Patch& from) {
  return route.elements() * static_cast<int64_t>(from.data.element_size());
}

/// The only box of a route, if its pixels are one piece of memory that MPI can use directly.
std::optional<Strided> one_piece(const Route& route, const Patch& patch,
                                 const CommContext& context) {
  if (route.boxes.size() != 1 || !patch.data.is_cpu() || context.stage_through_host)
    return std::nullopt;
  const Strided values = strided(patch, route.boxes[0]);
  return is_packed(values) ? std::optional(values) : std::nullopt;
}

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

void pack(const Route& route, const Patch& from, std::byte* data) {
  for (const Box& box : route.boxes) {
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
                                            const std::vector<Route>& routes) {
  const auto& memory = comm.context().shared_memory;
  std::vector<std::unique_ptr<End>> ends;
  for (const Route& route : routes) {
    const bool same_node = memory && memory->reaches(comm.world_rank(route.peer));
    ends.push_back(same_node ? std::make_unique<End>(comm, route.peer, tag) : nullptr);
  }
  return ends;
}

}  // namespace

Link::Link(const Communicator& comm, int tag, const std::vector<Route>& sends,
           const std::vector<Route>& receives)
    : comm_(comm),
      tag_(tag),
      outboxes_(mailboxes<Outbox>(comm, tag, sends)),
      inboxes_(mailboxes<Inbox>(comm, tag, receives)) {}

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
    send_message(link, from);
  }
}

void Outgoing::send_message(const Link& link, const Patch& from) {
  const Route& route = *route_;
  if (const auto piece = one_piece(route, from, comm_->context())) {
    message_ = comm_->send(bytes_of(*piece), std::make_shared<at::Tensor>(from.data), route.peer,
                           link.tag());
    return;
  }
  const at::Tensor packed = at::empty({route.elements()}, from.data.options().device(at::kCPU));
  pack(route, from, data_of(packed));
  message_ = comm_->send(packed, route.peer, link.tag());
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
  pack(*route_, from, copies.get());
  const int64_t letter = post({.packed = 1, .offset = *memory.offset_of(copies.get())}, copies);
  if (!small) letter_ = letter;  // so that nobody sends ever more to a rank that does not read
}

bool Outgoing::done() {
  return message_.ready() && (!letter_ || outbox_->taken(*letter_));
}

void Outgoing::finish() {
  message_.finish();
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
  } else if (const auto piece = one_piece(route, to, comm_->context()); piece && in_place) {
    message_ = comm_->receive(bytes_of(*piece), std::make_shared<at::Tensor>(to.data), route.peer,
                              link.tag());
  } else {
    packed_ = at::empty({route.elements()}, to.data.options().device(at::kCPU));
    message_ = comm_->receive(packed_, route.peer, link.tag());
  }
}

void Incoming::receive(const Consume& consume) {
  message_.finish();
  if (inbox_ != nullptr) {
    read_letter(consume);
  } else if (packed_.defined()) {
    unpack(data_of(packed_), consume);
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
    unpack(data, consume);
  } else {
    for (const Box& box : route_->boxes) consume(box, locate(where, data, box, type_));
  }
  inbox_->take(letter_);
}

void Incoming::unpack(std::byte* data, const Consume& consume) const {
  for (const Box& box : route_->boxes) {
    const Strided values = packed(data, box, type_);
    consume(box, values);
    data += bytes_of(values).size();
  }
}

}  // namespace mpi4dl
