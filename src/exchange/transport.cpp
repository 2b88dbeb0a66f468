#include "exchange/transport.hpp"

#include <ATen/ATen.h>

namespace mpi4dl {
namespace {

template <typename T>
std::span<std::byte> bytes_of(const std::shared_ptr<T>& object) {
  return std::as_writable_bytes(std::span(object.get(), 1));
}

std::span<std::byte> bytes_of(const Strided& values) {
  return {values.data, static_cast<size_t>(values.elements()) * c10::elementSize(values.type)};
}

std::byte* data_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

/// The only box of a route, if its pixels are one piece of memory that MPI can use directly.
std::optional<Strided> one_piece(const Route& route, const Patch& patch,
                                 const CommContext& context) {
  if (route.boxes.size() != 1 || !patch.data.is_cpu() || context.stage_through_host)
    return std::nullopt;
  const Strided values = strided(patch, route.boxes[0]);
  return is_packed(values) ? std::optional(values) : std::nullopt;
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

}  // namespace

bool Link::same_node(int peer) const {
  const auto& memory = comm.context().shared_memory;
  return memory && memory->reaches(comm.world_rank(peer));
}

Outgoing::Outgoing(const Link& link, const Route& route, const Patch& from)
    : comm_(&link.comm), route_(&route) {
  Traffic& sent = link.comm.context().sent;
  sent.messages += 1;
  sent.bytes += route.elements() * static_cast<int64_t>(from.data.element_size());
  if (link.same_node(route.peer)) {
    send_note(link, route, from);
  } else {
    send_message(link, route, from);
  }
}

void Outgoing::send_message(const Link& link, const Route& route, const Patch& from) {
  const Communicator& comm = link.comm;
  if (const auto piece = one_piece(route, from, comm.context())) {
    message_ =
        comm.send(bytes_of(*piece), std::make_shared<at::Tensor>(from.data), route.peer, link.tag);
    return;
  }
  const at::Tensor packed = at::empty({route.elements()}, from.data.options().device(at::kCPU));
  pack(route, from, data_of(packed));
  message_ = comm.send(packed, route.peer, link.tag);
}

void Outgoing::send_note(const Link& link, const Route& route, const Patch& from) {
  const Communicator& comm = link.comm;
  SharedMemory& memory = *comm.context().shared_memory;
  auto note = std::make_shared<Whereabouts>();
  if (const auto offset = memory.offset_of(from.data)) {
    kept_ = from.data;
    *note = describe(from, *offset);
  } else {
    const std::array<int64_t, 1> length{route.elements()};
    kept_ = memory.empty(length, from.data.scalar_type(), c10::MemoryFormat::Contiguous);
    pack(route, from, data_of(kept_));
    *note = {.packed = 1, .offset = *memory.offset_of(kept_)};
  }
  receipt_ = memory.lower_flag();
  note->receipt = receipt_.offset();
  message_ = comm.send(bytes_of(note), note, route.peer, link.tag);
}

bool Outgoing::done() {
  if (!message_.ready()) return false;
  if (!kept_.defined()) return true;
  comm_->progress();  // the note itself may still be on its way
  return receipt_.raised();
}

void Outgoing::finish() {
  message_.finish();
  if (!kept_.defined()) return;
  wait_until([this] { return done(); }, comm_->context(),
             [this] {
               return WaitReason{"copy",
                                 route_->elements() * static_cast<int64_t>(kept_.element_size()),
                                 comm_->world_rank(route_->peer), nullptr};
             });
}

Incoming::Incoming(const Link& link, const Route& route, const Patch& to, bool in_place)
    : comm_(&link.comm), route_(&route), type_(to.data.scalar_type()) {
  const Communicator& comm = link.comm;
  const int tag = link.tag;
  if (link.same_node(route.peer)) {
    note_ = std::make_shared<Whereabouts>();
    message_ = comm.receive(bytes_of(note_), note_, route.peer, tag);
  } else if (const auto piece = one_piece(route, to, comm.context()); piece && in_place) {
    message_ =
        comm.receive(bytes_of(*piece), std::make_shared<at::Tensor>(to.data), route.peer, tag);
  } else {
    packed_ = at::empty({route.elements()}, to.data.options().device(at::kCPU));
    message_ = comm.receive(packed_, route.peer, tag);
  }
}

void Incoming::receive(const Consume& consume) {
  message_.finish();
  if (note_) {
    read_from_peer(consume);
  } else if (packed_.defined()) {
    unpack(data_of(packed_), consume);
  }
}

void Incoming::read_from_peer(const Consume& consume) {
  const SharedMemory& memory = *comm_->context().shared_memory;
  const int peer = comm_->world_rank(route_->peer);
  std::byte* data = memory.address(peer, note_->offset);
  if (note_->packed != 0) {
    unpack(data, consume);
  } else {
    for (const Box& box : route_->boxes) consume(box, locate(*note_, data, box, type_));
  }
  memory.raise_flag(peer, note_->receipt);
}

void Incoming::unpack(std::byte* data, const Consume& consume) const {
  for (const Box& box : route_->boxes) {
    const Strided values = packed(data, box, type_);
    consume(box, values);
    data += bytes_of(values).size();
  }
}

}  // namespace mpi4dl
