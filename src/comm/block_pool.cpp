#include "comm/block_pool.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/error.hpp"
#include "base/memory_units.hpp"
#include "base/rounding.hpp"

namespace mpi4dl {
namespace {

/// Sizes come in classes, eight for each power of two, so that what is left of a piece is of use.
int64_t class_bytes(int64_t bytes) {
  const int64_t pages = round_up(std::max<int64_t>(bytes, 1), kPage);
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(pages)));
  return round_up(pages, std::max(kPage, power / 8));
}

}  // namespace

bool BlockPool::holds(int64_t bytes) const {
  bytes = class_bytes(bytes);
  return top_ + bytes <= end_ || free_.lower_bound({bytes, 0}) != free_.end();
}

BlockPool::Block BlockPool::allocate(int64_t bytes) {
  bytes = class_bytes(bytes);
  used_ += bytes;
  const auto fit = free_.lower_bound({bytes, 0});
  if (fit != free_.end()) return take(pieces_.find(fit->second), bytes);
  const int64_t offset = std::exchange(top_, top_ + bytes);
  end_ = std::max(end_, top_);
  pieces_[offset] = {bytes, true};
  return {offset, bytes};
}

BlockPool::Block BlockPool::take(Pieces::iterator piece, int64_t bytes) {
  const auto [offset, whole] = std::pair(piece->first, piece->second.bytes);
  remove_free(piece);
  pieces_[offset] = {bytes, true};
  if (whole > bytes) add_free(offset + bytes, whole - bytes);
  return {offset, bytes};
}

int64_t BlockPool::release(int64_t offset) {
  auto piece = pieces_.find(offset);
  ensure(piece != pieces_.end() && piece->second.used, "no block begins at offset {}", offset);
  const int64_t bytes = piece->second.bytes;
  used_ -= bytes;
  int64_t begin = offset, end = offset + bytes;
  if (const auto next = std::next(piece); next != pieces_.end() && !next->second.used) {
    end += next->second.bytes;
    remove_free(next);
  }
  if (piece != pieces_.begin() && !std::prev(piece)->second.used) {
    begin = std::prev(piece)->first;
    remove_free(std::prev(piece));
  }
  pieces_.erase(offset);
  if (end == top_) {
    top_ = begin;
  } else {
    add_free(begin, end - begin);
  }
  return bytes;
}

void BlockPool::add_free(int64_t offset, int64_t bytes) {
  pieces_[offset] = {bytes, false};
  free_.emplace(bytes, offset);
}

void BlockPool::remove_free(Pieces::iterator piece) {
  free_.erase({piece->second.bytes, piece->first});
  pieces_.erase(piece);
}

std::vector<BlockPool::Block> BlockPool::free_blocks() const {
  std::vector<Block> blocks;
  for (const auto& [offset, piece] : pieces_)
    if (!piece.used) blocks.push_back({offset, piece.bytes});
  if (top_ < end_) blocks.push_back({top_, end_ - top_});
  return blocks;
}

}  // namespace mpi4dl
