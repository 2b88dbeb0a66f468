#include "support/simulated_device/copies.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "memory/memory_meter.hpp"
#include "support/simulated_device/counting.hpp"
#include "support/simulated_device/host_views.hpp"
#include "support/simulated_device/pinned.hpp"
#include "support/simulated_device/waits.hpp"

namespace mpi4dl::simulated {
namespace {

Agent current_stream(const at::Tensor& tensor) {
  return agent_of(c10::impl::VirtualGuardImpl(tensor.device().type()).getStream(tensor.device()));
}

int64_t bytes_copied(const at::Tensor& target) {
  return target.numel() * static_cast<int64_t>(target.element_size());
}

void copy_in(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  const Agent stream = current_stream(target);
  const Touch touches[] = {touch(target, Access::writes)};
  const Moment when = Order::instance().run(stream, "a copy from the host", touches);
  ++counting().copies_in;
  counting().bytes_in += bytes_copied(target);
  {
    const UnmeteredSection unmetered;
    HostViews().of(target).copy_(source);
  }
  if (non_blocking)
    leave_later(when, source);
  else
    host_waits_for(Order::instance().after(stream));
}

void copy_out(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  const Agent stream = current_stream(source);
  const Touch touches[] = {touch(source, Access::reads)};
  const Moment when = Order::instance().run(stream, "a copy to the host", touches);
  ++counting().copies_out;
  counting().bytes_out += bytes_copied(target);
  {
    const UnmeteredSection unmetered;
    const at::Tensor values = HostViews().of(source);
    if (non_blocking) return arrive_later(when, target, at::empty_like(target).copy_(values));
    at::Tensor(target).copy_(values);
  }
  host_waits_for(Order::instance().after(stream));
}

/// Between two devices, the target's stream is in order with the source's, as in libtorch for CUDA.
void copy_on(const at::Tensor& source, const at::Tensor& target) {
  Order& order = Order::instance();
  const Agent stream = current_stream(source);
  const Agent other = current_stream(target);
  if (stream != other) order.block(stream, order.after(other));
  const Touch touches[] = {touch(source, Access::reads), touch(target, Access::writes)};
  order.run(stream, "a copy", touches);
  ++counting().operators;
  counting().bytes_on += bytes_copied(target);
  const UnmeteredSection unmetered;
  HostViews views;
  views.of(target).copy_(views.of(source));
  if (stream != other) order.block(other, order.after(stream));
}

}  // namespace

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  if (target.numel() == 0) return target;
  const bool on_device = !source.is_cpu() && !target.is_cpu();
  non_blocking = non_blocking && (on_device || is_pinned(source.is_cpu() ? source : target));
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (source.is_cpu())
    copy_in(source, target, non_blocking);
  else if (target.is_cpu())
    copy_out(source, target, non_blocking);
  else
    copy_on(source, target);
  return target;
}

}  // namespace mpi4dl::simulated
