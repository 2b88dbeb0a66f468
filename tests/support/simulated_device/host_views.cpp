#include "support/simulated_device/host_views.hpp"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>

#include "memory/memory_meter.hpp"
#include "support/simulated_device/counting.hpp"
#include "support/simulated_device/memory.hpp"

namespace mpi4dl::simulated {
namespace {

using Implementation = c10::TensorImpl;

void* address(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->data_ptr().get();
}

at::Tensor like(const at::Tensor& tensor, c10::Storage storage, c10::DispatchKey key) {
  at::Tensor made = at::detail::make_tensor<Implementation>(
      std::move(storage), c10::DispatchKeySet(key), tensor.dtype());
  made.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return made;
}

c10::Storage new_storage(int64_t bytes, c10::Device device) {
  const c10::DeviceGuard guard(device);
  return {c10::Storage::use_byte_size_t(), bytes, &device_allocator(), /*resizable=*/true};
}

}  // namespace

Touch touch(const at::Tensor& tensor, Access access) {
  const auto begin = reinterpret_cast<Address>(address(tensor.storage())) +
                     tensor.storage_offset() * tensor.element_size();
  Block& block = Memory::instance().at(reinterpret_cast<void*>(begin));
  return {&block.history,
          access,
          {begin, tensor.sizes(), tensor.strides(), static_cast<int64_t>(tensor.element_size())}};
}

Touch touch(const c10::Storage& storage, Access access) {
  const void* begin = address(storage);
  return {&Memory::instance().at(begin).history,
          access,
          {reinterpret_cast<Address>(begin), static_cast<int64_t>(storage.nbytes())}};
}

void grow(const c10::Storage& storage, int64_t bytes) {
  const auto before = static_cast<int64_t>(storage.nbytes());
  if (bytes <= before) return;
  c10::Storage larger = new_storage(bytes, storage.device());
  if (before > 0) {
    const c10::impl::VirtualGuardImpl guard(storage.device_type());
    const Touch touches[] = {touch(storage, Access::reads), touch(larger, Access::writes)};
    Order::instance().run(agent_of(guard.getStream(storage.device())), "resize_", touches);
    std::memcpy(bytes_behind(address(larger)), bytes_behind(address(storage)), before);
    ++counting().operators;
  }
  c10::StorageImpl* resized = storage.unsafeGetStorageImpl();
  resized->set_data_ptr_noswap(larger.unsafeGetStorageImpl()->set_data_ptr({}));
  resized->set_nbytes(static_cast<size_t>(bytes));
}

/// Frees host memory, of which no meter knows that it was taken.
HostViews::~HostViews() {
  const UnmeteredSection unmetered;
  for (Tensors& tensors : tensors_) tensors.on_host = at::Tensor();
  for (Storages& storages : storages_) storages.on_host = c10::Storage();
}

c10::Storage HostViews::host_storage(const c10::Storage& on_device) {
  for (const Storages& storages : storages_)
    if (storages.on_device.unsafeGetStorageImpl() == on_device.unsafeGetStorageImpl())
      return storages.on_host;
  c10::DataPtr bytes(bytes_behind(address(on_device)), c10::Device(c10::DeviceType::CPU));
  c10::Storage on_host(c10::Storage::use_byte_size_t(), on_device.nbytes(), std::move(bytes),
                       c10::GetCPUAllocator(), /*resizable=*/true);
  storages_.push_back({on_device, on_host});
  return on_host;
}

at::Tensor HostViews::of(const at::Tensor& tensor) {
  TORCH_CHECK(!tensor.is_conj() && !tensor.is_neg(),
              "the simulated device has no lazy conjugates and negatives");
  for (const Tensors& tensors : tensors_)
    if (tensors.on_device.is_same(tensor)) return tensors.on_host;
  at::Tensor on_host = like(tensor, host_storage(tensor.storage()), c10::DispatchKey::CPU);
  tensors_.push_back({tensor, on_host});
  return on_host;
}

c10::Storage HostViews::device_storage(const c10::Storage& on_host, c10::Device device) {
  for (const Storages& storages : storages_)
    if (storages.on_host.unsafeGetStorageImpl() == on_host.unsafeGetStorageImpl())
      return storages.on_device;
  c10::Storage on_device = new_storage(static_cast<int64_t>(on_host.nbytes()), device);
  if (on_host.nbytes() > 0) {
    std::memcpy(bytes_behind(address(on_device)), address(on_host), on_host.nbytes());
    made_.push_back(on_device);
  }
  storages_.push_back({on_device, on_host});
  return on_device;
}

at::Tensor HostViews::back(const at::Tensor& result, c10::Device device) {
  if (!result.defined()) return result;
  for (const Tensors& tensors : tensors_)
    if (tensors.on_host.is_same(result)) return tensors.on_device;
  return like(result, device_storage(result.storage(), device), c10::DispatchKey::PrivateUse1);
}

std::vector<at::Tensor> HostViews::follow() {
  const auto moved = [](const c10::Storage& on_device, const c10::Storage& on_host) {
    return address(on_host) != bytes_behind(address(on_device));
  };
  std::vector<at::Tensor> changed;
  for (const auto& [on_device, on_host] : tensors_)
    if (moved(on_device.storage(), on_host.storage()) || on_device.sizes() != on_host.sizes() ||
        on_device.strides() != on_host.strides()) {
      on_device.unsafeGetTensorImpl()->set_sizes_and_strides(on_host.sizes(), on_host.strides());
      changed.push_back(on_device);
    }
  for (const auto& [on_device, on_host] : storages_) {
    if (!moved(on_device, on_host)) continue;
    c10::Storage larger = new_storage(static_cast<int64_t>(on_host.nbytes()), on_device.device());
    std::memcpy(bytes_behind(address(larger)), address(on_host), on_host.nbytes());
    c10::StorageImpl* resized = on_device.unsafeGetStorageImpl();
    resized->set_data_ptr_noswap(larger.unsafeGetStorageImpl()->set_data_ptr({}));
    resized->set_nbytes(on_host.nbytes());
  }
  return changed;
}

}  // namespace mpi4dl::simulated
