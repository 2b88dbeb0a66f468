#include "ops/remade_value.hpp"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>

#include <utility>

#include "exchange/strided.hpp"
#include "ops/padding.hpp"

namespace mpi4dl {
namespace {

/// Calls `visit(where a margin is, where it is kept)`.
template <typename Visit>
void visit_margins(const Patch& patch, const std::vector<Box>& margins, const at::Tensor& kept,
                   const Visit& visit) {
  auto* data = static_cast<std::byte*>(kept.data_ptr());
  for (const Box& margin : margins) {
    visit(strided(patch, margin), packed(data, margin, kept.scalar_type()));
    data += margin.elements() * static_cast<int64_t>(kept.element_size());
  }
}

}  // namespace

RemadeValue::RemadeValue(Patch patch, const Box& computed, Box image, std::function<void()> make)
    : patch_(std::move(patch)),
      image_(std::move(image)),
      margins_(difference(intersect(patch_.box, image_), computed)),
      make_(std::move(make)) {
  int64_t elements = 0;
  for (const Box& margin : margins_) elements += margin.elements();
  kept_ = at::empty({elements}, patch_.data.scalar_type());
  visit_margins(patch_, margins_, kept_,
                [](const Strided& margin, const Strided& place) { copy(place, margin); });
  patch_.data.storage().unsafeGetStorageImpl()->set_data_ptr({nullptr, patch_.data.device()});
}

void RemadeValue::make_again() {
  c10::StorageImpl* storage = patch_.data.storage().unsafeGetStorageImpl();
  storage->set_data_ptr(c10::GetCPUAllocator()->allocate(storage->nbytes()));
  make_();
  visit_margins(patch_, margins_, kept_,
                [](const Strided& margin, const Strided& place) { copy(margin, place); });
  clear_padding(patch_, image_);
}

}  // namespace mpi4dl
