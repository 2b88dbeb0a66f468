#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace mpi4dl {

/// Knows which parts of a growing region of memory are in use: arithmetic alone, the memory is the
/// caller's.
///
/// A request gets the smallest free piece between used ones that holds it, or the first bytes
/// behind all of them; freed neighbours join into one piece. What a request gets depends on the
/// blocks in use alone, so a training step that is repeated needs no more than the first one did.
class BlockPool {
 public:
  struct Block {
    int64_t offset, bytes;
  };

  /// Returns a block of at least so many bytes, whole pages long.
  Block allocate(int64_t bytes);
  /// Returns true if a request of so many bytes needs no growth.
  bool holds(int64_t bytes) const;
  /// Takes back what began at `offset`; returns its bytes.
  int64_t release(int64_t offset);

  /// Counts the bytes that were ever in use.
  int64_t end() const { return end_; }
  /// Counts the bytes in use now.
  int64_t used() const { return used_; }
  /// Returns what could be given back to the system, from the first byte on.
  std::vector<Block> free_blocks() const;

 private:
  struct Piece {
    int64_t bytes;
    bool used;
  };
  using Pieces = std::map<int64_t, Piece>;  // by offset; they cover [0, top)

  Block take(Pieces::iterator piece, int64_t bytes);
  void add_free(int64_t offset, int64_t bytes);
  void remove_free(Pieces::iterator piece);

  Pieces pieces_;
  std::set<std::pair<int64_t, int64_t>> free_;  // bytes, offset
  int64_t top_ = 0;                             // behind the last block in use
  int64_t end_ = 0;
  int64_t used_ = 0;
};

}  // namespace mpi4dl
