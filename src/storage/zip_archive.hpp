#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace mpi4dl {

/// Says where an entry of an archive has its bytes in the file, and their checksum.
struct ZipEntry {
  int64_t begin = 0, bytes = 0;
  uint32_t crc32 = 0;
  bool compressed = false;  ///< as TorchScript's code is; it cannot be read
};

/// Reads entries of a zip archive, which may itself lie within a larger file. Reads only entries
/// that are stored as they are, as torch writes all but code.
///
/// It is a reader of our own because entries are read in place and their places are checked, which
/// libzip does not show: each lies in the file and before the directory, none overlaps another, no
/// two have one name, and no name leads out of the archive. Throws Error.
class ZipArchive {
 public:
  /// Reads the directory of the archive in the bytes [begin, begin + bytes) of a file.
  ZipArchive(std::string path, int64_t begin, int64_t bytes);
  /// Reads the directory of a file.
  explicit ZipArchive(const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, ZipEntry>& entries() const { return entries_; }
  /// Returns null where there is no entry of this name.
  const ZipEntry* find(const std::string& name) const;
  /// Returns the entry that has this name below the archive's root folder, or without one.
  std::optional<std::string> find_ending(const std::string& end) const;
  /// Returns it likewise, and throws Error where there is none.
  std::string name_ending(const std::string& end) const;

  /// Returns the bytes of an entry of at most so many, whose checksum is right.
  std::string read(const std::string& name, int64_t most) const;
  /// Reads all bytes of an entry to memory, and checks them likewise.
  void read(const std::string& name, void* data) const;

 private:
  std::string path_;
  std::map<std::string, ZipEntry> entries_;
};

}  // namespace mpi4dl
