#include "data/workers.hpp"

#include <ATen/Parallel.h>

#include <utility>

namespace mpi4dl {

Workers::Workers(int count) {
  for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
}

Workers::~Workers() {
  drop_waiting();
  const std::lock_guard lock(mutex_);
  ending_ = true;
  news_.notify_all();
}

std::future<at::Tensor> Workers::start(std::function<at::Tensor()> job) {
  std::packaged_task<at::Tensor()> task(std::move(job));
  std::future<at::Tensor> result = task.get_future();
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(task));
  news_.notify_one();
  return result;
}

void Workers::drop_waiting() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
}

void Workers::work() {
  at::set_num_threads(1);  // of this thread: the cores belong to those who compute
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    std::packaged_task<at::Tensor()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace mpi4dl
