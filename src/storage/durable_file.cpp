#include "storage/durable_file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

[[noreturn]] void fail(const char* what, const std::string& path) {
  throw Error(fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)));
}

void add(Digest& digest, const void* data, size_t bytes) {
  if (bytes == 0) return;  // the data of nothing may be null, which zlib takes for a new beginning
  digest.crc32 = static_cast<uint32_t>(
      crc32_z(digest.crc32, static_cast<const Bytef*>(data), static_cast<z_size_t>(bytes)));
  digest.bytes += static_cast<int64_t>(bytes);
}

/// Opens a file or folder that is only read.
class Reader {
 public:
  explicit Reader(const std::string& path, int flags = O_RDONLY)
      : path_(path), descriptor_(open(path.c_str(), flags | O_CLOEXEC)) {
    if (descriptor_ < 0) fail("open", path_);
  }
  ~Reader() { close(descriptor_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  int descriptor() const { return descriptor_; }

  /// Reads at most so many bytes; none at the end of the file.
  size_t read(void* data, size_t bytes, int64_t begin) const {
    ssize_t got = -1;
    do {
      got = pread(descriptor_, data, bytes, begin);
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail("read", path_);
    return static_cast<size_t>(got);
  }

 private:
  const std::string& path_;
  int descriptor_;
};

}  // namespace

DurableFile::DurableFile(std::string path)
    : path_(std::move(path)),
      descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail("create", path_);
}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void DurableFile::write(const void* data, size_t bytes) {
  add(digest_, data, bytes);
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", path_);
    next += written;
    bytes -= static_cast<size_t>(written);
  }
}

Digest DurableFile::finish() {
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail("write", path_);  // a device has no disk
  if (close(std::exchange(descriptor_, -1)) != 0) fail("write", path_);
  return digest_;
}

Digest write_durably(const std::string& path, const std::string& text) {
  DurableFile file(path);
  file.write(text.data(), text.size());
  return file.finish();
}

Digest digest_of(const std::string& path) {
  const Reader file(path);
  Digest digest;
  const auto piece = std::make_unique_for_overwrite<char[]>(kPiece);
  while (const size_t got = file.read(piece.get(), kPiece, digest.bytes))
    add(digest, piece.get(), got);
  return digest;
}

Digest digest_of_text(const std::string& text) {
  Digest digest;
  add(digest, text.data(), text.size());
  return digest;
}

void read_range(const std::string& path, int64_t begin, void* data, size_t bytes) {
  const Reader file(path);
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const size_t got = file.read(next, bytes, begin);
    ensure(got > 0, "'{}' ends too early", path);
    next += got;
    begin += static_cast<int64_t>(got);
    bytes -= got;
  }
}

std::string read_text(const std::string& path) {
  std::string text(static_cast<size_t>(file_size(path)), ' ');
  read_range(path, 0, text.data(), text.size());
  return text;
}

int64_t file_size(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  ensure(!error, "cannot read '{}': {}", path, error.message());
  return static_cast<int64_t>(size);
}

void sync_folder(const std::string& path) {
  const Reader folder(path, O_RDONLY | O_DIRECTORY);
  if (fsync(folder.descriptor()) != 0) fail("write", path);
}

}  // namespace mpi4dl
