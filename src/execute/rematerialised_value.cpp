#include "execute/rematerialised_value.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "execute/padding.hpp"

namespace mpi4dl {
namespace {

/// Gives other memory to all tensors that share this one's, and returns what they had.
c10::DataPtr exchange_memory(const at::Tensor& tensor, c10::DataPtr memory) {
  return tensor.storage().unsafeGetStorageImpl()->set_data_ptr(std::move(memory));
}

}  // namespace

RematerialisedValue::RematerialisedValue(const Backend& backend, Patch patch, const Box& computed,
                                         Box image, std::function<void()> make)
    : backend_(backend),
      patch_(std::move(patch)),
      image_(std::move(image)),
      margins_(difference(intersect(patch_.box, image_), computed)),
      kept_(backend.gather(patch_, margins_)),
      make_(std::move(make)) {
  exchange_memory(patch_.data, {nullptr, patch_.data.device()});
}

void RematerialisedValue::rematerialise() {
  const auto bytes = static_cast<int64_t>(patch_.data.storage().nbytes());
  const at::Tensor fresh = at::empty({bytes}, backend_.options(at::kByte));
  exchange_memory(patch_.data, exchange_memory(fresh, {nullptr, backend_.device()}));
  make_();
  backend_.unpack(Combine::copy, kept_, margins_, patch_);
  clear_padding(backend_, patch_, image_);
}

}  // namespace mpi4dl
