#include "comm/mailbox.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "base/memory_units.hpp"
#include "comm/shared_memory.hpp"

namespace mpi4dl {
namespace {

static_assert(sizeof(Letter) <= kCacheLine);

std::span<std::byte> bytes_of(const std::shared_ptr<int64_t>& number) {
  return std::as_writable_bytes(std::span(number.get(), 1));
}

}  // namespace

std::byte* Letter::content() {
  return reinterpret_cast<std::byte*>(this) + kCacheLine;
}

Outbox::Outbox(const Communicator& comm, int peer, int tag)
    : comm_(comm), memory_(comm.context().shared_memory), peer_(peer) {
  posted_.push_back(make_letter(0));
  posted_.front().letter->taken.store(1, std::memory_order_relaxed);
  auto start = std::make_shared<int64_t>(*memory_->offset_of(posted_.front().memory.get()));
  greeting_ = comm_.send(bytes_of(start), start, peer, tag);
}

Outbox::~Outbox() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    comm_.await([this] { return all_taken(); },
                [this] { return WaitReason{"letters", 0, comm_.world_rank(peer_), nullptr}; });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi4dl: letters were abandoned: %s\n", error.what());
  }
}

Outbox::Paper Outbox::make_letter(int64_t bytes) {
  Paper paper{memory_->allocate(kCacheLine + bytes), nullptr};
  paper.letter = new (paper.memory.get()) Letter;
  paper.letter->bytes = bytes;
  return paper;
}

Outbox::Paper Outbox::blank_letter(int64_t bytes) {
  recycle();
  if (unused_.empty() || unused_.back().letter->bytes != bytes) {
    unused_.clear();
    return make_letter(bytes);
  }
  Paper paper = std::move(unused_.back());
  unused_.pop_back();
  paper.letter->next.store(Letter::kNone, std::memory_order_relaxed);
  paper.letter->taken.store(0, std::memory_order_relaxed);
  return paper;
}

int64_t Outbox::post(std::span<const std::byte> content, std::shared_ptr<void> enclosed) {
  Letter* before = posted_.back().letter;
  posted_.push_back(blank_letter(static_cast<int64_t>(content.size())));
  std::ranges::copy(content, posted_.back().letter->content());
  if (enclosed) keep(std::move(enclosed));
  before->next.store(*memory_->offset_of(posted_.back().memory.get()), std::memory_order_release);
  memory_->ring(comm_.world_rank(peer_));
  return first_ + static_cast<int64_t>(posted_.size()) - 1;
}

/// If the letter is written anew before anybody asks, the memory is kept until that one is taken.
void Outbox::keep(std::shared_ptr<void> enclosed) {
  CommContext& context = comm_.context();
  context.forget_taken();
  context.enclosed.push_back(
      {std::move(enclosed), [paper = posted_.back()] { return paper.taken(); }});
}

void Outbox::recycle() {
  while (posted_.size() > 1 && posted_[0].taken() && posted_[1].taken()) {
    unused_.push_back(std::move(posted_.front()));
    posted_.pop_front();
    ++first_;
  }
}

bool Outbox::taken(int64_t number) {
  return number < first_ || posted_[number - first_].taken();
}

bool Outbox::all_taken() {
  recycle();
  return posted_.size() == 1 && taken(first_);
}

Inbox::Inbox(const Communicator& comm, int peer, int tag)
    : comm_(comm),
      memory_(comm.context().shared_memory),
      peer_(peer),
      greeting_(comm_.receive(bytes_of(start_), start_, peer, tag)) {}

Letter* Inbox::at(int64_t offset) const {
  return reinterpret_cast<Letter*>(memory_->address(comm_.world_rank(peer_), offset));
}

bool Inbox::greeted() {
  if (last_ == nullptr && greeting_.ready()) last_ = at(*start_);
  return last_ != nullptr;
}

std::span<std::byte> Inbox::find(int64_t number) {
  if (!greeted()) return {};
  while (found_ <= number) {
    const int64_t next = last_->next.load(std::memory_order_acquire);
    if (next == Letter::kNone) return {};
    last_ = at(next);
    untaken_[found_++] = last_;
  }
  Letter* letter = untaken_.at(number);
  return {letter->content(), static_cast<size_t>(letter->bytes)};
}

void Inbox::take(int64_t number) {
  untaken_.extract(number).mapped()->taken.store(1, std::memory_order_release);
  memory_->ring(comm_.world_rank(peer_));
}

}  // namespace mpi4dl
