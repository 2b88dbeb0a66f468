#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

class Communicator;

/// Returns the cores that any rank of this node may use: "the same cores" for both sides.
/// Collective over the world.
std::vector<int> cores_of_node(const Communicator& world);

/// Runs mpi4dl-baseline, which trains with libtorch alone. It sleeps while nobody asks it.
class BaselineProcess {
 public:
  struct Options {
    std::vector<std::string> flags;  ///< of mpi4dl-baseline
    std::vector<int> cores;          ///< that it may use, one thread on each
    double timeout_seconds = 300;    ///< for one answer
  };
  explicit BaselineProcess(const Options& options);
  ~BaselineProcess();
  BaselineProcess(const BaselineProcess&) = delete;
  BaselineProcess& operator=(const BaselineProcess&) = delete;

  /// Returns the answer to one of its commands; throws Error where it has ended instead.
  double ask(const std::string& command);

 private:
  double timeout_seconds_;
  pid_t process_ = -1;
  int socket_ = -1;  // its standard input and output
};

}  // namespace mpi4dl
