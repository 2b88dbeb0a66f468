#include "exchange/device_flight.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "backend/backend.hpp"
#include "comm/idle_section.hpp"
#include "comm/pieces.hpp"
#include "exchange/transport.hpp"

namespace mpi4dl {
namespace {

std::span<std::byte> memory_of(const at::Tensor& buffer) {
  return {bytes_of(buffer), buffer.nbytes()};
}

}  // namespace

DeviceFlight::DeviceFlight(const Journey& journey)
    : comm_(journey.link.comm()),
      context_(comm_.context()),
      tag_(journey.link.tag()),
      how_(journey.how),
      to_(journey.to) {
  const IdleSection section(context_, &IdleTime::communication);
  for (const Box& box : journey.local) context_.backend->move(how_, journey.from, to_, box);
  // What the computing stream does to fresh memory is waited for with all that came before.
  for (const Route& route : journey.receives) incoming_.push_back({&route, buffer_for(route)});
  if (!context_.device_aware) expect();
  pack(journey);
  if (context_.device_aware) {
    await_packed();  // and with it all that ever used the memory of the buffers
    expect();
  }
  context_.unsent.push_back(this);
  // Who waits for nothing may not come back before the peer needs it.
  if (context_.device_aware || incoming_.empty()) post();
}

at::Tensor DeviceFlight::buffer_for(const Route& route) const {
  const c10::ScalarType type = to_.data.scalar_type();
  const at::Device device = context_.backend->device();
  return context_.device_aware ? at::empty({route.elements()}, context_.backend->options(type))
                               : empty_on_host({route.elements()}, type, device);
}

void DeviceFlight::pack(const Journey& journey) {
  const SideStream& side = context_.backend->side_stream();
  const SideStream::Section on_side(side);
  if (!journey.sends.empty()) side.keep(journey.from.data);
  for (const Route& route : journey.sends) {
    at::Tensor packed = context_.backend->gather(journey.from, route.boxes);
    if (!context_.device_aware) {
      const at::Tensor host = buffer_for(route);
      host.copy_(packed, /*non_blocking=*/true);
      packed = host;
    }
    outgoing_.push_back({&route, std::move(packed)});
    context_.sent.messages += 1;
    context_.sent.bytes += static_cast<int64_t>(outgoing_.back().buffer.nbytes());
  }
  if (!outgoing_.empty() || context_.device_aware)
    packed_ = std::make_unique<DeviceEvent>(context_.backend->device());
}

void DeviceFlight::expect() {
  for (Incoming& route : incoming_)
    route.message =
        comm_.receive(memory_of(route.buffer), std::make_shared<at::Tensor>(route.buffer),
                      route.route->peer, tag_);
}

void DeviceFlight::await_packed() const {
  if (!packed_) return;
  comm_.await([this] { return packed_->reached(); },
              [this] {
                int64_t bytes = 0;
                for (const Outgoing& route : outgoing_)
                  bytes += static_cast<int64_t>(route.buffer.nbytes());
                return WaitReason{"packing of halos", bytes, WaitReason::kOwnDevice, nullptr};
              });
}

void DeviceFlight::send() {
  await_packed();
  for (Outgoing& route : outgoing_)
    route.message = comm_.send(memory_of(route.buffer), std::make_shared<at::Tensor>(route.buffer),
                               route.route->peer, tag_);
  posted_ = true;
}

/// Sends what was packed before this flight's, too.
void DeviceFlight::post() {
  while (!posted_) {
    Unsent* first = context_.unsent.front();
    first->send();
    context_.unsent.pop_front();
  }
}

DeviceFlight::~DeviceFlight() {
  std::erase(context_.unsent, static_cast<Unsent*>(this));  // an exception passes by
}

/// Brings what has come to the device, where it is not there, while that computes.
at::Tensor DeviceFlight::on_device(const at::Tensor& buffer) const {
  const SideStream::Section on_side(context_.backend->side_stream(), SideStream::Order::as_it_is);
  return buffer.to(context_.backend->device(), /*non_blocking=*/true);
}

void DeviceFlight::receive() {
  const IdleSection section(context_, &IdleTime::communication);
  post();
  if (incoming_.empty()) return;
  const SideStream& side = context_.backend->side_stream();
  for (Incoming& route : incoming_) {
    route.message.finish();
    const at::Tensor values = on_device(route.buffer);
    // A halo comes behind what computes meanwhile, which may read its place (and compute that once
    // more); nobody looks at gradients before all are added.
    const SideStream::Section on_side(side, how_ == Combine::copy
                                                ? SideStream::Order::behind_computing
                                                : SideStream::Order::as_it_is);
    context_.backend->unpack(how_, values, route.route->boxes, to_);
    if (context_.device_aware) side.keep(route.buffer);
  }
  side.keep(to_.data);
  side.join();
  incoming_.clear();
}

bool DeviceFlight::sent() {
  if (!posted_ && !packed()) return false;
  post();
  return std::ranges::all_of(outgoing_, [](Outgoing& route) { return route.message.ready(); });
}

void DeviceFlight::finish() {
  receive();
  const IdleSection section(context_, &IdleTime::communication);
  for (Outgoing& route : outgoing_) route.message.finish();
}

}  // namespace mpi4dl
