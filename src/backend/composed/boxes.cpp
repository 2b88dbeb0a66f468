#include <ATen/ATen.h>

#include "backend/composed/composed_backend.hpp"

namespace mpi4dl {
namespace {

void combine(Combine how, const at::Tensor& to, const at::Tensor& values) {
  if (how == Combine::copy) {
    to.copy_(values);
  } else {
    to.add_(values.to(to.device()));
  }
}

/// Calls `visit(box, view)` with the place of each box in packed memory.
template <typename Visit>
void visit_packed(const at::Tensor& packed, std::span<const Box> boxes, const Visit& visit) {
  int64_t offset = packed.storage_offset();
  for (const Box& box : boxes) {
    const std::vector<int64_t> shape = box.shape(), strides = packed_strides(box);
    visit(box, packed.as_strided(shape, strides, offset));
    offset += box.elements();
  }
}

int64_t elements_of(std::span<const Box> boxes) {
  int64_t sum = 0;
  for (const Box& box : boxes) sum += box.elements();
  return sum;
}

}  // namespace

void ComposedBackend::move(Combine how, const Patch& from, const Patch& to, const Box& box) const {
  const at::Tensor source = from.view(box), target = to.view(box);
  if (source.data_ptr() != target.data_ptr()) combine(how, target, source);
}

void ComposedBackend::read(Combine how, const Strided& host, const Patch& to,
                           const Box& box) const {
  combine(how, to.view(box), as_tensor(host));
}

void ComposedBackend::clear(const Patch& patch, const Box& box) const {
  patch.view(box).zero_();
}

at::Tensor ComposedBackend::gather(const Patch& from, std::span<const Box> boxes) const {
  const at::Tensor packed = at::empty({elements_of(boxes)}, from.data.options());
  visit_packed(packed, boxes,
               [&](const Box& box, const at::Tensor& place) { place.copy_(from.view(box)); });
  return packed;
}

void ComposedBackend::unpack(Combine how, const at::Tensor& packed, std::span<const Box> boxes,
                             const Patch& to) const {
  visit_packed(packed.to(to.data.device(), /*non_blocking=*/true), boxes,
               [&](const Box& box, const at::Tensor& place) { combine(how, to.view(box), place); });
}

void ComposedBackend::pack(const Patch& from, std::span<const Box> boxes, std::byte* host) const {
  const at::Tensor packed = gather(from, boxes);
  at::from_blob(host, packed.sizes(), at::TensorOptions(from.data.scalar_type())).copy_(packed);
}

}  // namespace mpi4dl
