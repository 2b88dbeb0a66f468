#include "memory/block_pool.hpp"

#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "base/memory_units.hpp"

namespace mpi4dl {

bool BlockPool::holds(int64_t bytes) const {
  bytes = block_bytes(bytes);
  return top_ + bytes <= end_ || free_.lower_bound({bytes, 0}) != free_.end();
}

BlockPool::Block BlockPool::allocate(int64_t bytes) {
  bytes = block_bytes(bytes);
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
