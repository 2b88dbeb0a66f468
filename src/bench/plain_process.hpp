#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

class Communicator;

/// The cores that ranks of this node may use; all of them together are "the same cores".
/// Collective over the world.
std::vector<int> cores_of_node(const Communicator& world);

/// A running mpi4dl-plain, which trains with libtorch alone. It sleeps while nobody asks it.
class PlainProcess {
 public:
  struct Options {
    std::vector<std::string> flags;  ///< of mpi4dl-plain
    std::vector<int> cores;          ///< that it may use, one thread on each
    double timeout_seconds = 300;    ///< for one answer
  };
  explicit PlainProcess(const Options& options);
  ~PlainProcess();
  PlainProcess(const PlainProcess&) = delete;
  PlainProcess& operator=(const PlainProcess&) = delete;

  /// The answer to one of its commands; throws Error where it has ended instead.
  double ask(const std::string& command);

 private:
  double timeout_seconds_;
  pid_t process_ = -1;
  int socket_ = -1;  // its standard input and output
};

}  // namespace mpi4dl
