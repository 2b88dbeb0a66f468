// The operators that make tensors of the device, or give them other memory.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include "support/simulated_device/copies.hpp"
#include "support/simulated_device/host_views.hpp"
#include "support/simulated_device/libtorch.hpp"
#include "support/simulated_device/memory.hpp"
#include "support/simulated_device/order.hpp"

namespace mpi4dl::simulated {
namespace {

constexpr c10::DispatchKeySet kKey(c10::DispatchKey::PrivateUse1);

/// Says what a device tensor is to be, besides its shape.
struct Kind {
  Optional<c10::ScalarType> dtype;
  Optional<c10::Layout> layout;
  Optional<c10::Device> device;
  Optional<bool> pinned;

  c10::Device where() const {
    TORCH_CHECK(!layout || *layout == c10::kStrided, "tensors of the simulated device are dense");
    TORCH_CHECK(!pinned || !*pinned, "only host memory can be pinned");
    return device ? *device : c10::Device(c10::DeviceType::PrivateUse1);
  }
};

/// Fills it, or says that it has: fresh memory is NaN anyway.
at::Tensor filled(at::Tensor fresh) {
  if (!fills_fresh_memory() || fresh.numel() == 0) return fresh;
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  const Touch written = touch(fresh, Access::writes);
  Order::instance().run(agent_of(guard.getStream(fresh.device())), "filling fresh memory",
                        {&written, 1});
  return fresh;
}

at::Tensor empty(c10::IntArrayRef sizes, Optional<c10::ScalarType> dtype,
                 Optional<c10::Layout> layout, Optional<c10::Device> device, Optional<bool> pinned,
                 Optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(Kind{dtype, layout, device, pinned}.where());
  return filled(at::detail::empty_generic(sizes, &device_allocator(), kKey,
                                          c10::dtype_or_default(dtype), format));
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         Optional<c10::ScalarType> dtype, Optional<c10::Layout> layout,
                         Optional<c10::Device> device, Optional<bool> pinned) {
  const c10::DeviceGuard guard(Kind{dtype, layout, device, pinned}.where());
  return filled(at::detail::empty_strided_generic(sizes, strides, &device_allocator(), kKey,
                                                  c10::dtype_or_default(dtype)));
}

const at::Tensor& resize(const at::Tensor& tensor, c10::IntArrayRef sizes,
                         Optional<c10::MemoryFormat> format) {
  c10::TensorImpl* resized = tensor.unsafeGetTensorImpl();
  if (tensor.sizes() != sizes) {
    const auto bytes = at::detail::computeStorageNbytesContiguous(sizes, tensor.element_size(),
                                                                  tensor.storage_offset());
    grow(tensor.storage(), static_cast<int64_t>(bytes));
    resized->set_sizes_contiguous(sizes);
  }
  if (format && *format != c10::MemoryFormat::Preserve) resized->empty_tensor_restride(*format);
  return tensor;
}

at::Tensor& set_strided(at::Tensor& tensor, c10::Storage source, int64_t offset,
                        c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  TORCH_CHECK(source.device() == tensor.device(), "a tensor on ", tensor.device(),
              " cannot be set to memory on ", source.device());
  c10::TensorImpl* set = tensor.unsafeGetTensorImpl();
  set->set_storage_keep_dtype(std::move(source));
  set->set_storage_offset(offset);
  if (strides.empty())
    set->set_sizes_contiguous(sizes);
  else
    set->set_sizes_and_strides(sizes, strides);
  grow(tensor.storage(), static_cast<int64_t>(at::detail::computeStorageNbytes(
                             sizes, tensor.strides(), tensor.element_size(), offset)));
  return tensor;
}

at::Tensor& set_storage(at::Tensor& tensor, c10::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / tensor.element_size());
  return set_strided(tensor, std::move(source), 0, {elements}, {});
}

at::Tensor& set_tensor(at::Tensor& tensor, const at::Tensor& source) {
  return set_strided(tensor, source.storage(), source.storage_offset(), source.sizes(),
                     source.strides());
}

at::Tensor& set_nothing(at::Tensor& tensor) {
  const c10::DeviceGuard guard(tensor.device());
  return set_storage(tensor, {c10::Storage::use_byte_size_t(), 0, &device_allocator(),
                              /*resizable=*/true});
}

at::Tensor copy_and_resize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return copy_from(source, target, /*non_blocking=*/false);
}

void record_stream(at::Tensor& tensor, c10::Stream stream) {
  const c10::DataPtr& data = tensor.storage().data_ptr();
  c10::impl::getDeviceGuardImpl(tensor.device().type())->recordDataPtrOnStream(data, stream);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("resize_", TORCH_FN(resize));
  library.impl("set_", TORCH_FN(set_nothing));
  library.impl("set_.source_Storage", TORCH_FN(set_storage));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(set_strided));
  library.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_and_resize));
  library.impl("record_stream", TORCH_FN(record_stream));
}

}  // namespace
}  // namespace mpi4dl::simulated
