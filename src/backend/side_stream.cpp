#include "backend/side_stream.hpp"

namespace mpi4dl {

DeviceEvent::DeviceEvent(at::Device device) : event_(device.type()) {
  event_.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

SideStream::SideStream(at::Device device)
    : guard_(device.type()), device_(device), stream_(guard_.getStreamFromGlobalPool(device)) {}

SideStream::Section::Section(const SideStream& side, Order order)
    : side_(side), computing_(side.guard_.getStream(side.device_)) {
  if (order == Order::behind_computing) DeviceEvent(side_.device_).block(side_.stream_);
  side_.guard_.exchangeStream(side_.stream_);
}

SideStream::Section::~Section() {
  side_.guard_.exchangeStream(computing_);
}

void SideStream::join() const {
  c10::Event done(device_.type());
  done.record(stream_);
  done.block(guard_.getStream(device_));
}

void SideStream::keep(const at::Tensor& tensor) const {
  if (tensor.numel() > 0) tensor.record_stream(stream_);
}

}  // namespace mpi4dl
