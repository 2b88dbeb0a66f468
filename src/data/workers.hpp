#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace mpi4dl {

/// Runs threads that load in the background, in the order of the requests. What a job throws
/// travels to whoever asks for its result.
class Workers {
 public:
  explicit Workers(int count);
  /// Waits for the jobs that have begun.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  std::future<at::Tensor> start(std::function<at::Tensor()> job);
  /// Forgets all jobs that have not begun.
  void drop_waiting();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::packaged_task<at::Tensor()>> waiting_;
  bool ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace mpi4dl
