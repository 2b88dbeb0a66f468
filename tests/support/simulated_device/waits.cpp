#include "support/simulated_device/waits.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "memory/memory_meter.hpp"
#include "support/simulated_device.hpp"
#include "support/simulated_device/counting.hpp"
#include "support/simulated_device/order.hpp"

namespace mpi4dl::simulated {
namespace {

/// Is a copy between host and device that the host has not waited for.
struct Copy {
  Moment when;
  at::Tensor host;    // where it comes from or goes to
  at::Tensor values;  // that it has
  bool arrives;
};

std::mutex copies_mutex;

/// Lists them in the order in which they began.
std::vector<Copy>& copies_under_way() {
  static std::vector<Copy>& copies = *new std::vector<Copy>;
  return copies;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

void end_copies() {
  const std::lock_guard lock(copies_mutex);
  if (copies_under_way().empty()) return;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  std::vector<at::Tensor> not_ours;  // perhaps released here: meters count them
  const UnmeteredSection unmetered;
  bool changed = false;
  std::erase_if(copies_under_way(), [&](Copy& copy) {
    if (!Order::instance().host_knows(copy.when)) return false;
    if (copy.arrives)
      copy.host.copy_(copy.values);
    else
      changed = changed || !same_bits(copy.host, copy.values);
    not_ours.push_back(std::move(copy.host));
    return true;
  });
  if (changed)
    throw Refused("the host changed memory while a non-blocking copy to the device read it");
}

void begin_copy(const Copy& copy) {
  const std::lock_guard lock(copies_mutex);
  copies_under_way().push_back(copy);
}

}  // namespace

void host_was_told(const Clock& clock) {
  if (Order::instance().host_knows(clock)) return;
  host_waits_for(clock);
}

void host_waits_for(const Clock& clock) {
  ++counting().host_waits;
  Order::instance().host_learns(clock);
  end_copies();
}

void arrive_later(const Moment& when, const at::Tensor& target, const at::Tensor& values) {
  if (target.is_floating_point())
    at::Tensor(target).fill_(std::numeric_limits<double>::quiet_NaN());
  else
    at::Tensor(target).fill_(-1);
  begin_copy({when, target, values, /*arrives=*/true});
}

void leave_later(const Moment& when, const at::Tensor& source) {
  const UnmeteredSection unmetered;
  begin_copy({when, source, source.clone(), /*arrives=*/false});
}

}  // namespace mpi4dl::simulated
