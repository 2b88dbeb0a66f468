#include "support/simulated_device/counting.hpp"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "support/simulated_device.hpp"
#include "support/simulated_device/memory.hpp"
#include "support/simulated_device/settings.hpp"

namespace mpi4dl::simulated {
namespace {

void print_counters() {
  const Counters c = counters();
  std::fprintf(stderr,
               "simulated device of process %d: %" PRId64 " operators, %" PRId64
               " copies in (%" PRId64 " bytes), %" PRId64 " copies out (%" PRId64
               " bytes), %" PRId64 " host waits, at most %" PRId64 " bytes live\n",
               getpid(), c.operators, c.copies_in, c.bytes_in, c.copies_out, c.bytes_out,
               c.host_waits, c.peak_bytes);
}

}  // namespace

Counting& counting() {
  static Counting& counting = *new Counting{};
  static const int at_exit = settings().report ? std::atexit(print_counters) : 0;
  (void)at_exit;
  return counting;
}

Counters counters() {
  const Counting& c = counting();
  const Memory& memory = Memory::instance();
  return {.operators = c.operators,
          .copies_in = c.copies_in,
          .copies_out = c.copies_out,
          .bytes_in = c.bytes_in,
          .bytes_out = c.bytes_out,
          .host_waits = c.host_waits,
          .pinned_bytes = c.pinned_bytes,
          .bytes_on = c.bytes_on,
          .gaps = c.gaps,
          .live_bytes = memory.live_bytes(),
          .peak_bytes = memory.peak_bytes()};
}

void reset_counters() {
  Counting& c = counting();
  for (std::atomic<int64_t>* counter :
       {&c.operators, &c.copies_in, &c.copies_out, &c.bytes_in, &c.bytes_out, &c.host_waits,
        &c.pinned_bytes, &c.bytes_on, &c.gaps})
    *counter = 0;
  Memory::instance().forget_peak();
}

}  // namespace mpi4dl::simulated
