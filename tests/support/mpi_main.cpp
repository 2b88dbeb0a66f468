// Runs the tests of one program on all ranks: a failure on one rank fails every rank, and an
// exception that a test lets escape ends the job, because the other ranks would wait for it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "backend/device.hpp"
#include "backend/libtorch_warnings.hpp"
#include "base/launch.hpp"
#include "comm/collectives.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {
namespace {

// A test waits for a rank that failed; its sentence should come before CTest's time-out.
constexpr double kTimeoutSeconds = 60;

Session* the_session = nullptr;

std::string name_of(const ::testing::TestInfo& test) {
  return fmt::format("{}.{}", test.test_suite_name(), test.name());
}

/// Names the test in the sentence of a failing rank.
class Activity : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override {
    session().doing("running " + name_of(test));
  }
};

/// Reports failures of other ranks than 0, which reports as usual.
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
  for (const int theirs : all_gather(failed, everybody))
    if (theirs != 0) return 1;
  return 0;
}

/// Takes what MPI4DL_TEST_ON asks for: a backend on the host, the simulated device, or a real one.
void choose_place(SessionOptions& options) {
  const char* place = std::getenv("MPI4DL_TEST_ON");
  if (place == nullptr) return;
  const std::string name = place;
  if (name == "composed") {
    options.backend = name;
    return;
  }
  options.device_aware_mpi = name == "aware";
  if (options.device_aware_mpi) setenv("MPI4DL_SIMULATED_MPI", "aware", /*overwrite=*/1);
  const bool simulated = options.device_aware_mpi || name == "simulated";
  options.device = choose_device(simulated ? "privateuseone" : name, read_launch().local_rank);
  warn_once(read_launch().rank == 0);
  set_arithmetic({.deterministic = true});  // and without TensorFloat32, which cuDNN would take
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
  mpi4dl::SessionOptions options{.timeout_seconds = kTimeoutSeconds};
  choose_place(options);
  mpi4dl::Session session(options);
  the_session = &session;
  listen();
  try {
    return run_all();
  } catch (const std::exception& error) {
    session.fail(error);
  }
}
