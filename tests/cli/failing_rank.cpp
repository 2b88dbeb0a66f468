// A job that fails as told, mostly because rank 1 does while the others count on it; a test watches
// how it ends.
#include <ATen/ATen.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

#include "comm/collectives.hpp"
#include "comm/session.hpp"

namespace {

using mpi4dl::Session;

/// Rank 0 waits for a message from rank 1, which is asleep.
void sleep_forever(Session& session) {
  session.doing("waiting for a tile");
  if (session.world().rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
  session.world().receive(at::empty({1024}, at::kFloat), /*from=*/1, /*tag=*/0).finish();
}

void throw_in_the_middle(Session& session) {
  session.doing("reading image 7");
  if (session.world().rank() == 1) throw std::runtime_error("the file is gone");
  session.doing("waiting for everybody");
  barrier(session.world());
}

/// All ranks find the same, while their launcher has no time to end any of them.
void throw_together(Session& session) {
  session.doing("reading image 7");
  if (session.first()) kill(getppid(), SIGSTOP);
  barrier(session.world());
  throw std::runtime_error("the file is gone");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc == 2 ? argv[1] : "";
  Session session({.timeout_seconds = how == "sleep" ? 2.0 : 300.0});
  try {
    if (how == "sleep") sleep_forever(session);
    if (how == "throw") throw_in_the_middle(session);
    if (how == "together") throw_together(session);
  } catch (const std::exception& error) {
    session.fail(error);
  }
}
