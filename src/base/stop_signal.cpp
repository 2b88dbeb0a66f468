#include "base/stop_signal.hpp"

#include <csignal>

namespace mpi4dl {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGUSR1};

// A signal handler can reach nothing else.
volatile std::sig_atomic_t noted = 0;

void note(int /*signal*/) {
  noted = 1;
}

}  // namespace

StopSignal::StopSignal() {
  noted = 0;
  for (int i = 0; i < 2; ++i) previous_[i] = std::signal(kSignals[i], note);
}

StopSignal::~StopSignal() {
  for (int i = 0; i < 2; ++i) std::signal(kSignals[i], previous_[i]);
}

bool StopSignal::came() const {
  return noted != 0;
}

}  // namespace mpi4dl
