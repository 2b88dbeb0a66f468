#include "base/unfinished_file.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

namespace fs = std::filesystem;

/// Entries are static, because a signal handler must not meet memory that was freed.
struct Entry {
  enum State { unused, changing, valid };
  std::atomic<State> state{unused};
  std::array<char, PATH_MAX> path{};
};

std::array<Entry, 8> table;

/// Returns the entry's index; -1 where the table is full, and a signal would leave the file.
int enter(const std::string& path) {
  for (size_t i = 0; i < table.size() && path.size() < PATH_MAX; ++i) {
    auto expected = Entry::unused;
    if (!table[i].state.compare_exchange_strong(expected, Entry::changing)) continue;
    std::strcpy(table[i].path.data(), path.c_str());
    table[i].state = Entry::valid;
    return static_cast<int>(i);
  }
  return -1;
}

bool is_device(const std::string& name) {
  std::error_code ignored;
  return fs::is_character_file(name, ignored) || fs::is_fifo(name, ignored);
}

}  // namespace

UnfinishedFile::UnfinishedFile(std::string name)
    : name_(std::move(name)), partial_(is_device(name_) ? name_ : name_ + ".partial") {
  if (partial_ != name_) entry_ = enter(fs::absolute(partial_));
}

UnfinishedFile::~UnfinishedFile() {
  std::error_code ignored;
  if (!published_ && partial_ != name_) fs::remove(partial_, ignored);
  if (entry_ >= 0) table[entry_].state = Entry::unused;
}

void UnfinishedFile::publish() {
  std::error_code failure;
  if (partial_ != name_) fs::rename(partial_, name_, failure);
  ensure(!failure, "cannot write '{}': {}", name_, failure.message());
  published_ = true;
}

void remove_unfinished_files() noexcept {
  for (const Entry& entry : table)
    if (entry.state == Entry::valid) unlink(entry.path.data());
}

}  // namespace mpi4dl
