#pragma once

#include <string>

namespace mpi4dl {

/// Keeps other processes out of a folder while it lives, those of other nodes too.
///
/// An open file is locked (an open file description lock): the system releases it with the last
/// process that has it open, however that ends, so a crash locks nobody out. On NFS the server
/// keeps the lock. The file says who has it; it stays behind, because to remove it would let two
/// processes lock two files of the same name.
class FolderLock {
 public:
  /// Makes the folder where there is none. `flag`: by which it was given, `file`: the name of the
  /// lock in it. Throws UsageError where another process has the lock, and says who.
  FolderLock(const std::string& flag, const std::string& folder, const std::string& file);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Says why other processes are not kept out: this file system has no locks. Empty where they
  /// are.
  const std::string& weakness() const { return weakness_; }

 private:
  int descriptor_ = -1;
  std::string weakness_;
};

}  // namespace mpi4dl
