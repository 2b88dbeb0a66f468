#include "storage/folder_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>

#include "base/error.hpp"
#include "storage/durable_file.hpp"

namespace mpi4dl {
namespace {

std::string job() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"})
    if (const char* number = std::getenv(name)) return fmt::format(", job {}", number);
  return "";
}

/// Describes this process in one line.
std::string this_process() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::time_t now = std::time(nullptr);
  std::array<char, 64> since{};
  std::strftime(since.data(), since.size(), "%Y-%m-%d %H:%M:%S UTC", std::gmtime(&now));
  return fmt::format("process {} on {} since {}{}\n", getpid(), host.data(), since.data(), job());
}

/// Reads who holds the lock, who needs a moment to write that. Opens the file again, because only
/// then does NFS look at what another node has written.
std::string holder(const std::string& path) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::string text = read_text(path);
    if (!text.empty() && text.ends_with('\n')) return text.substr(0, text.find('\n'));
  }
  return "another process";
}

int lock(int descriptor) {
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  int result = 0;
  do {
    result = fcntl(descriptor, F_OFD_SETLK, &whole);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

}  // namespace

FolderLock::FolderLock(const std::string& flag, const std::string& folder,
                       const std::string& file) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  validate(!failure, "cannot make {} {}: {}", flag, folder, failure.message());
  const std::string path = folder + "/" + file;
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  validate(descriptor_ >= 0, "cannot write to {} {}: {}", flag, folder, std::strerror(errno));
  const int refused = lock(descriptor_);
  if (refused == EAGAIN || refused == EACCES) {
    close(descriptor_);
    throw UsageError(
        fmt::format("{} {} is in use by {}; wait until that run ends, or use another "
                    "folder",
                    flag, folder, holder(path)));
  }
  if (refused != 0) weakness_ = std::strerror(refused);
  const std::string text = this_process();
  // For people; the lock is what counts, so a full disk does not matter here.
  if (ftruncate(descriptor_, 0) == 0 && pwrite(descriptor_, text.data(), text.size(), 0) > 0)
    fsync(descriptor_);
}

FolderLock::~FolderLock() {
  close(descriptor_);
}

}  // namespace mpi4dl
