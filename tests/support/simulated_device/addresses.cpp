#include "support/simulated_device/addresses.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <csignal>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "support/simulated_device/settings.hpp"

namespace mpi4dl::simulated {
namespace {

// The signal handler reads them.
std::atomic<Address> the_begin{0};
std::atomic<Address> the_distance{0};

struct sigaction the_handler_before;

void on_fault(int signal, siginfo_t* fault, void* /*context*/) {
  const bool sent = fault->si_code <= 0;  // by somebody, not by the kernel
  if (sent || !is_device_address(fault->si_addr)) {
    // It happens again, to whom it concerns.
    sigaction(signal, &the_handler_before, nullptr);
    if (sent) std::raise(signal);
    return;
  }
  constexpr char kLine[] = "the host touched memory of the simulated device\n";
  (void)!write(STDERR_FILENO, kLine, sizeof(kLine) - 1);
  std::signal(signal, SIG_DFL);  // the fault happens again, and ends the process
}

Address reserve() {
  const size_t bytes = size_t(kBytesOfDevice) * settings().devices;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* range = mmap(nullptr, 2 * bytes, PROT_NONE, kFlags, -1, 0);
  const auto begin = reinterpret_cast<Address>(range);
  if (range == MAP_FAILED ||
      mprotect(reinterpret_cast<void*>(begin + bytes), bytes, PROT_READ | PROT_WRITE) != 0)
    throw std::system_error(errno, std::generic_category(),
                            "no addresses for the simulated devices");
  the_distance = bytes;
  the_begin = begin;
  name_host_accesses();
  return begin;
}

}  // namespace

Address first_address(int device) {
  static const Address begin = reserve();
  return begin + size_t(kBytesOfDevice) * device;
}

bool is_device_address(const void* address) {
  const Address begin = the_begin;
  return begin != 0 && reinterpret_cast<Address>(address) - begin < the_distance;
}

int device_of(const void* address) {
  return static_cast<int>((reinterpret_cast<Address>(address) - the_begin) / kBytesOfDevice);
}

std::byte* bytes_behind(const void* address) {
  if (address == nullptr) return nullptr;  // tensors without elements
  return reinterpret_cast<std::byte*>(reinterpret_cast<Address>(address) + the_distance);
}

void name_host_accesses() {
  struct sigaction now{};
  now.sa_sigaction = on_fault;
  now.sa_flags = SA_SIGINFO | SA_ONSTACK;
  struct sigaction before{};
  sigaction(SIGSEGV, &now, &before);
  if ((before.sa_flags & SA_SIGINFO) == 0 || before.sa_sigaction != on_fault)
    the_handler_before = before;
}

}  // namespace mpi4dl::simulated
