#include "comm/node/descriptor_queue.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "base/memory_units.hpp"
#include "comm/node/shared_memory.hpp"

namespace mpi4dl {
namespace {

static_assert(sizeof(DescriptorSlot) <= kCacheLine);

std::span<std::byte> bytes_of(const std::shared_ptr<int64_t>& offset) {
  return std::as_writable_bytes(std::span(offset.get(), 1));
}

}  // namespace

std::byte* DescriptorSlot::payload() {
  return reinterpret_cast<std::byte*>(this) + kCacheLine;
}

DescriptorSender::DescriptorSender(const Communicator& comm, int peer, int tag)
    : comm_(comm), memory_(comm.context().shared_memory), peer_(peer) {
  posted_.push_back(make_slot(0));
  posted_.front().slot->acknowledged.store(1, std::memory_order_relaxed);
  auto start = std::make_shared<int64_t>(*memory_->offset_of(posted_.front().memory.get()));
  handshake_ = comm_.send(bytes_of(start), start, peer, tag);
}

DescriptorSender::~DescriptorSender() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    comm_.await(
        [this] { return all_acknowledged(); },
        [this] { return WaitReason{"acknowledgements", 0, comm_.world_rank(peer_), nullptr}; });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi4dl: a descriptor queue was abandoned: %s\n", error.what());
  }
}

DescriptorSender::OwnedSlot DescriptorSender::make_slot(int64_t bytes) {
  OwnedSlot owned{memory_->allocate(kCacheLine + bytes), nullptr};
  owned.slot = new (owned.memory.get()) DescriptorSlot;
  owned.slot->bytes = bytes;
  return owned;
}

DescriptorSender::OwnedSlot DescriptorSender::free_slot(int64_t bytes) {
  recycle();
  if (unused_.empty() || unused_.back().slot->bytes != bytes) {
    unused_.clear();
    return make_slot(bytes);
  }
  OwnedSlot owned = std::move(unused_.back());
  unused_.pop_back();
  owned.slot->next.store(DescriptorSlot::kNone, std::memory_order_relaxed);
  owned.slot->acknowledged.store(0, std::memory_order_relaxed);
  return owned;
}

int64_t DescriptorSender::post(std::span<const std::byte> payload,
                               std::shared_ptr<void> keep_alive) {
  DescriptorSlot* before = posted_.back().slot;
  posted_.push_back(free_slot(static_cast<int64_t>(payload.size())));
  std::ranges::copy(payload, posted_.back().slot->payload());
  if (keep_alive) keep(std::move(keep_alive));
  before->next.store(*memory_->offset_of(posted_.back().memory.get()), std::memory_order_release);
  memory_->ring(comm_.world_rank(peer_));
  return first_ + static_cast<int64_t>(posted_.size()) - 1;
}

/// If the slot is reused before anybody asks, the memory is kept until the new one is acknowledged.
void DescriptorSender::keep(std::shared_ptr<void> memory) {
  CommContext& context = comm_.context();
  context.release_acknowledged();
  context.kept_alive.push_back(
      {std::move(memory), [owned = posted_.back()] { return owned.acknowledged(); }});
}

void DescriptorSender::recycle() {
  while (posted_.size() > 1 && posted_[0].acknowledged() && posted_[1].acknowledged()) {
    unused_.push_back(std::move(posted_.front()));
    posted_.pop_front();
    ++first_;
  }
}

bool DescriptorSender::acknowledged(int64_t number) {
  return number < first_ || posted_[number - first_].acknowledged();
}

bool DescriptorSender::all_acknowledged() {
  recycle();
  return posted_.size() == 1 && acknowledged(first_);
}

DescriptorReceiver::DescriptorReceiver(const Communicator& comm, int peer, int tag)
    : comm_(comm),
      memory_(comm.context().shared_memory),
      peer_(peer),
      handshake_(comm_.receive(bytes_of(start_), start_, peer, tag)) {}

DescriptorSlot* DescriptorReceiver::at(int64_t offset) const {
  return reinterpret_cast<DescriptorSlot*>(memory_->address(comm_.world_rank(peer_), offset));
}

bool DescriptorReceiver::connected() {
  if (last_ == nullptr && handshake_.ready()) last_ = at(*start_);
  return last_ != nullptr;
}

std::span<std::byte> DescriptorReceiver::find(int64_t number) {
  if (!connected()) return {};
  while (found_ <= number) {
    const int64_t next = last_->next.load(std::memory_order_acquire);
    if (next == DescriptorSlot::kNone) return {};
    last_ = at(next);
    unacknowledged_[found_++] = last_;
  }
  DescriptorSlot* slot = unacknowledged_.at(number);
  return {slot->payload(), static_cast<size_t>(slot->bytes)};
}

void DescriptorReceiver::acknowledge(int64_t number) {
  unacknowledged_.extract(number).mapped()->acknowledged.store(1, std::memory_order_release);
  memory_->ring(comm_.world_rank(peer_));
}

}  // namespace mpi4dl
