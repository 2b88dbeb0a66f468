#include "base/append_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Returns the length of a file; a device has none, and cannot be cut.
int64_t length_of(int descriptor) {
  struct stat status{};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

AppendFile::AppendFile(std::string path, Start start)
    : path_(std::move(path)),
      descriptor_(
          open(path_.c_str(),
               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (start == Start::empty ? O_TRUNC : 0),
               0666)) {
  if (descriptor_ < 0) fail("create");
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void AppendFile::append(std::string_view record) {
  const int64_t length = length_of(descriptor_);
  if (write_all(descriptor_, record)) return;
  const int reason = errno;
  // Where that fails too, a reader meets the part of a record, as after a crash.
  if (length >= 0 && ftruncate(descriptor_, length) != 0) errno = 0;
  errno = reason;
  fail("write");
}

void AppendFile::fail(const char* what) const {
  throw Error(fmt::format("cannot {} '{}': {}", what, path_, std::strerror(errno)));
}

}  // namespace mpi4dl
