// Runs the tests of one program on all ranks: a failure on one rank fails every rank, and an
// exception that a test lets escape ends the job, because the other ranks would wait for it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <string>

#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

// A test waits for a rank that failed; its sentence should come before CTest's time-out.
constexpr double kTimeoutSeconds = 60;

Session* the_session = nullptr;

std::string name_of(const ::testing::TestInfo& test) {
  return fmt::format("{}.{}", test.test_suite_name(), test.name());
}

/// The sentence of a failing rank should name its test.
class Activity : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override {
    session().doing("running " + name_of(test));
  }
};

/// Rank 0 reports as usual; from other ranks only failures are news.
class FailuresOnly : public ::testing::EmptyTestEventListener {
  // Kept here, because GoogleTest does not answer questions while it reports a failure.
  void OnTestStart(const ::testing::TestInfo& test) override { test_ = name_of(test); }

  void OnTestPartResult(const ::testing::TestPartResult& part) override {
    if (!part.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: Failure in %s\n%s\n", world().rank(),
                 part.file_name() == nullptr ? "unknown file" : part.file_name(),
                 part.line_number(), test_.c_str(), part.message());
  }

  std::string test_;
};

void listen() {
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  listeners.Append(new Activity);  // NOLINT: owned by the listeners
  if (session().first()) return;
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailuresOnly);  // NOLINT: owned by the listeners
}

/// The verdict has a communicator of its own: a rank that left a test early must not meet the
/// others in the middle of that test's collectives.
int run_all() {
  const Communicator everybody = *world().split(0);
  const int failed = RUN_ALL_TESTS() == 0 ? 0 : 1;
  session().doing("agreeing on the verdict");
  for (const int theirs : all_gather(everybody, failed))
    if (theirs != 0) return 1;
  return 0;
}

}  // namespace

Session& session() {
  return *the_session;
}

}  // namespace mpi4dl::testing

int main(int argc, char** argv) {
  using namespace mpi4dl::testing;
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::GTEST_FLAG(catch_exceptions) = false;
  mpi4dl::Session session({.timeout_seconds = kTimeoutSeconds});
  the_session = &session;
  listen();
  try {
    return run_all();
  } catch (const std::exception& error) {
    session.fail(error);
  }
}
