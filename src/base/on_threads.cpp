#include "base/on_threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace mpi4dl {

void on_threads(size_t count, const std::function<void(size_t)>& action) {
  constexpr size_t kThreads = 8;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(kThreads, count); ++i)
      threads.emplace_back([&] {
        try {
          for (size_t at = next++; at < count; at = next++) action(at);
        } catch (...) {
          const std::scoped_lock lock(mutex);
          failure = std::current_exception();
          next = count;
        }
      });
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace mpi4dl
