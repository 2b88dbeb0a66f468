#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mpi4dl {

/// Holds length and checksum of a file, which tell whether it still is what was written. A crc32
/// notices every flip of up to 32 bits in a row, and other damage but for one case in four billion.
struct Digest {
  int64_t bytes = 0;
  uint32_t crc32 = 0;

  bool operator==(const Digest&) const = default;
};

/// Writes a new file from its beginning to its end, and is on the disk itself once it is finished.
/// Every failure is an Error that names the file and the reason.
class DurableFile {
 public:
  /// Replaces a file of this name.
  explicit DurableFile(std::string path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(const void* data, size_t bytes);
  /// Waits until the disk has it.
  Digest finish();

 private:
  std::string path_;
  int descriptor_;
  Digest digest_;
};

/// Writes a short file in one go.
Digest write_durably(const std::string& path, const std::string& text);

/// Reads the whole file to find out.
Digest digest_of(const std::string& path);
Digest digest_of_text(const std::string& text);

/// Reads the bytes [begin, begin + bytes) of a file.
void read_range(const std::string& path, int64_t begin, void* data, size_t bytes);
std::string read_text(const std::string& path);
int64_t file_size(const std::string& path);

/// Waits until the disk has the names in this folder.
void sync_folder(const std::string& path);

}  // namespace mpi4dl
