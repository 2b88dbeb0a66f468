// emulated-switch: a network switch in user space, for machines that have only themselves.
//
//     emulated-switch PORTS DELAY_SECONDS BITS_PER_SECOND        (0 bits: as fast as it goes)
//
// Makes the network devices node0, node1, ... and carries Ethernet frames between them. The cable
// from a node to the switch takes BITS_PER_SECOND, one frame after the other, and each frame
// arrives DELAY_SECONDS after it has left. Nothing is lost. The hardware address of node i ends in
// i, so the switch has nothing to learn; what is addressed to nobody in particular goes to all.
//
// It says "ready" when the devices are there, and runs until it is ended. Linux, root.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr size_t kAddressBytes = 6;
constexpr size_t kLargestFrame = 65536;
constexpr size_t kFramesAtOnce = 64;

/// Opens a network device whose frames this process reads and writes.
int open_device(const std::string& name) {
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  if (device < 0 || ioctl(device, TUNSETIFF, &request) < 0)
    throw std::runtime_error(name + ": " + std::strerror(errno));
  return device;
}

struct Frame {
  Clock::time_point arrival;
  std::vector<uint8_t> bytes;
};

struct Port {
  int device = -1;
  Clock::time_point cable_free;  // when the last frame has left
  std::deque<Frame> under_way;   // in the order of their arrival
};

class Switch {
 public:
  Switch(int ports, Seconds delay, double bits_per_second)
      : delay_(delay), bits_per_second_(bits_per_second) {
    for (int i = 0; i < ports; ++i)
      ports_.push_back(
          {.device = open_device("node" + std::to_string(i)), .cable_free = {}, .under_way = {}});
  }

  [[noreturn]] void run() {
    for (;;) {
      wait();
      for (Port& port : ports_) {
        take_frames(port);
        deliver(port);
      }
    }
  }

 private:
  void wait() const {
    std::vector<pollfd> devices;
    std::optional<Clock::time_point> next;
    for (const Port& port : ports_) {
      devices.push_back({port.device, POLLIN, 0});
      if (!port.under_way.empty())
        next =
            next ? std::min(*next, port.under_way.front().arrival) : port.under_way.front().arrival;
    }
    timespec left{};
    if (next) {
      const auto time = std::max(*next - Clock::now(), Clock::duration::zero());
      const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
      left.tv_sec = seconds.count();
      left.tv_nsec = std::chrono::nanoseconds(time - seconds).count();
    }
    ppoll(devices.data(), devices.size(), next ? &left : nullptr, nullptr);
  }

  void take_frames(Port& port) {
    for (size_t i = 0; i < kFramesAtOnce; ++i) {
      const ssize_t length = read(port.device, buffer_.data(), buffer_.size());
      if (length < static_cast<ssize_t>(2 * kAddressBytes)) return;
      port.cable_free = std::max(port.cable_free, Clock::now());
      if (bits_per_second_ > 0)
        port.cable_free += std::chrono::duration_cast<Clock::duration>(
            Seconds(8.0 * static_cast<double>(length) / bits_per_second_));
      port.under_way.push_back(
          {port.cable_free + std::chrono::duration_cast<Clock::duration>(delay_),
           {buffer_.begin(), buffer_.begin() + length}});
    }
  }

  void deliver(Port& port) {
    while (!port.under_way.empty() && port.under_way.front().arrival <= Clock::now()) {
      send(port, port.under_way.front().bytes);
      port.under_way.pop_front();
    }
  }

  void send(const Port& from, const std::vector<uint8_t>& frame) const {
    const bool to_all = (frame[0] & 1) != 0;
    const size_t addressee = frame[kAddressBytes - 1];
    for (size_t i = 0; i < ports_.size(); ++i)
      if (&ports_[i] != &from && (to_all || i == addressee))
        if (write(ports_[i].device, frame.data(), frame.size()) < 0 && errno != EIO)
          throw std::runtime_error(std::string("a frame could not be delivered: ") +
                                   std::strerror(errno));
  }

  Seconds delay_;
  double bits_per_second_;
  std::vector<Port> ports_;
  std::array<uint8_t, kLargestFrame> buffer_{};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: emulated-switch PORTS DELAY_SECONDS BITS_PER_SECOND\n");
    return 2;
  }
  try {
    Switch between(std::atoi(argv[1]), Seconds(std::atof(argv[2])), std::atof(argv[3]));
    std::printf("ready\n");
    std::fflush(stdout);
    between.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "emulated-switch: %s\n", error.what());
    return 1;
  }
}
