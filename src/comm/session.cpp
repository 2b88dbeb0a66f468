#include "comm/session.hpp"

#include <ATen/Parallel.h>
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <thread>

#include "backend/backend.hpp"
#include "backend/device.hpp"
#include "backend/device_errors.hpp"
#include "base/affinity.hpp"
#include "base/error.hpp"
#include "base/instruction_set.hpp"
#include "base/launch.hpp"
#include "base/stop_signal.hpp"
#include "comm/agreement.hpp"
#include "comm/check.hpp"
#include "comm/collectives.hpp"
#include "comm/node/shared_memory.hpp"

namespace mpi4dl {
namespace {

bool mpi_reads_device_memory() {
  int found = 0;
#if defined(MPIX_CUDA_AWARE_SUPPORT)  // Open MPI
  found |= MPIX_Query_cuda_support();
#endif
#if defined(MPIX_ROCM_AWARE_SUPPORT)  // Open MPI 5
  found |= MPIX_Query_rocm_support();
#endif
#if defined(MPIX_GPU_SUPPORT_CUDA)  // MPICH
  for (const int type : {MPIX_GPU_SUPPORT_CUDA, MPIX_GPU_SUPPORT_HIP}) {
    int is_supported = 0;
    if (MPIX_GPU_query_support(type, &is_supported) == MPI_SUCCESS) found |= is_supported;
  }
#endif
  return found != 0;
}

struct CoreShare {
  int cores = 1;    // that this rank may use
  int sharers = 1;  // ranks of this node that may use one of them
};

/// Launchers bind ranks to cores in many ways; only the masks themselves tell who shares what.
CoreShare core_share(const Communicator& node) {
  const cpu_set_t mine = allowed_cores();
  CoreShare share{.cores = CPU_COUNT(&mine), .sharers = 0};
  for (const cpu_set_t& other : all_gather(mine, node))
    if (overlap(mine, other)) ++share.sharers;
  return share;
}

/// Returns whether Slurm shows this rank devices of its own, perhaps by the same names as others to
/// other ranks. Its variable is a number, or a model and a number: a100:2.
bool has_its_own(const at::Device& device) {
  const char* given = std::getenv("SLURM_GPUS_PER_TASK");
  if (given == nullptr) return false;
  const std::string text = given;
  return text.substr(text.rfind(':') + 1) == std::to_string(device_count(device.type()));
}

/// Names the device of this rank among those of its node. Ranks may be shown different ones, which
/// all have the number 0.
size_t name_of_device(const at::Device& device, int node_rank) {
  std::string name = device.str();
  if (has_its_own(device)) name += fmt::format(" of rank {}", node_rank);
  for (const char* shown : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
    if (const char* which = std::getenv(shown)) name += fmt::format(" {}={}", shown, which);
  return std::hash<std::string>()(name);
}

int count_devices(const at::Device& device, const Communicator& node) {
  if (device.is_cpu()) return 0;
  const std::vector<size_t> names = all_gather(name_of_device(device, node.rank()), node);
  return static_cast<int>(std::set<size_t>(names.begin(), names.end()).size());
}

Communicator node_of(const Communicator& world) {
  MPI_Comm node = MPI_COMM_NULL;
  mpi(MPI_Comm_split_type(world.handle(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  return {node, world.shared_context()};
}

std::shared_ptr<CommContext> make_context(const SessionOptions& options) {
  auto context = std::make_shared<CommContext>();
  context->timeout_seconds = options.timeout_seconds;
  // MPI counts in an int, and the widest element must fit.
  context->max_message_bytes =
      std::clamp<int64_t>(options.max_message_bytes, sizeof(double), INT_MAX);
  context->stage_through_host = options.stage_through_host;
  context->backend = make_backend(options.backend, options.device);
  validate(
      !options.device_aware_mpi || mpi_reads_device_memory(),
      "this MPI library says that it does not read the memory of devices; exchange through the "
      "host");
  context->device_aware = options.device_aware_mpi;
  return context;
}

}  // namespace

Session::Session(const SessionOptions& options) {
  keep_onednn_from_amx_of_unknown_size();
  start_mpi_alone();
  use_device(options.device);  // MPI, too, takes memory on the current one
  int provided = 0;
  mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  context_ = make_context(options);
  world_ = std::make_unique<Communicator>(MPI_COMM_WORLD, context_);
  context_->world_rank = world_->rank();
  validate(provided == MPI_THREAD_MULTIPLE,
           "this MPI library was built without MPI_THREAD_MULTIPLE, which mpi4dl needs");
  const Communicator node = node_of(*world_);
  node_ranks_ = node.size();
  node_rank_ = node.rank();
  node_devices_ = count_devices(options.device, node);
  const CoreShare share = core_share(node);
  context_->oversubscribed = share.sharers > share.cores;
  if (options.shared_memory) context_->shared_memory = SharedMemory::create(node);
  if (context_->shared_memory) expect_failure_in(&context_->shared_memory->asked());
  if (std::getenv("OMP_NUM_THREADS") == nullptr)
    at::set_num_threads(std::max(1, share.cores / share.sharers));
  threads_ = at::get_num_threads();
  failing_ = std::make_unique<Communicator>(*world_->split(0));
}

Session::~Session() {
  expect_failure_in(nullptr);
  failing_.reset();
  world_.reset();
  context_.reset();
  MPI_Finalize();
}

/// Returns whether all ranks come here within a second. Ranks that find the same mistake do, since
/// they have just agreed on it or read the same command line.
bool Session::everybody_fails() {
  constexpr auto kPatience = std::chrono::seconds(1);
  MPI_Request barrier = MPI_REQUEST_NULL;
  mpi(MPI_Ibarrier(failing_->handle(), &barrier));
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int done = 0;
  while (std::chrono::steady_clock::now() < end) {
    mpi(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE));
    if (done != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void Session::fail(const std::exception& error) {
  const std::string sentence = sentence_of(error);
  const bool usage = dynamic_cast<const UsageError*>(&error) != nullptr;
  const bool shared = usage || dynamic_cast<const CommonError*>(&error) != nullptr;
  const auto speak = [&] {
    std::fflush(stdout);  // the sentence comes last
    if (usage)
      std::fprintf(stderr, "mpi4dl: %s\n", sentence.c_str());
    else
      std::fprintf(stderr, "mpi4dl: rank %d of %d failed while %s: %s\n", world_->rank(),
                   world_->size(), context_->doing.c_str(), sentence.c_str());
  };
  if (shared && everybody_fails()) {
    if (context_->shared_memory) context_->shared_memory->first_to_ask();  // said: see asked()
    if (first()) speak();
    std::fflush(nullptr);
    MPI_Finalize();
    std::_Exit(usage ? 2 : 1);
  }
  // Often all ranks fail at once, with the same sentence: the first to speak ends the others.
  std::this_thread::sleep_for(std::chrono::milliseconds(100) * std::min(world_->rank(), 20));
  if (context_->shared_memory && !context_->shared_memory->first_to_ask())
    std::this_thread::sleep_for(std::chrono::seconds(5));  // until the speaker ends this rank
  else
    speak();
  std::fflush(nullptr);
  if (world_->size() > 1) MPI_Abort(MPI_COMM_WORLD, usage ? 2 : 1);
  std::_Exit(usage ? 2 : 1);
}

}  // namespace mpi4dl
