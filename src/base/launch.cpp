#include "base/launch.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace mpi4dl {
namespace {

std::optional<int> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 0) return std::nullopt;
  return static_cast<int>(value);
}

/// Reads the variables of Open MPI, MVAPICH, Intel MPI, Hydra and Slurm.
int local_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
                               "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"})
    if (const auto rank = number_in(variable)) return *rank;
  return 0;
}

}  // namespace

Launch read_launch() {
  struct Variables {
    const char* rank;
    const char* ranks;
  };
  // Slurm sets SLURM_NTASKS in a batch script too, which is one process; the last name is only set
  // in what srun starts.
  constexpr Variables kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                      {"PMI_RANK", "PMI_SIZE"},
                                      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const Variables& variables : kLaunchers) {
    const auto rank = number_in(variables.rank), ranks = number_in(variables.ranks);
    if (!rank || !ranks) continue;
    return {*rank, ranks, local_rank()};
  }
  return {.rank = number_in("PMIX_RANK").value_or(0), .local_rank = local_rank()};
}

void start_mpi_alone() {
  if (read_launch().ranks || std::getenv("PMIX_RANK") != nullptr) return;
  constexpr int kKeep = 0;
  setenv("OMPI_MCA_ess_singleton_isolated", "1", kKeep);
  setenv("OMPI_MCA_pml", "ob1", kKeep);
  // There is nobody else, whatever a launcher's ranks use; version 5 would leave a file of shared
  // memory behind.
  setenv("OMPI_MCA_btl", "self", 1);
}

void end_with_usage_error(const Launch& launch, const std::string& sentence, SeenBy seen) {
  const bool first = launch.rank == 0;
  if (!first) std::this_thread::sleep_for(std::chrono::seconds(3));
  std::fflush(stdout);  // the sentence comes last
  if (first || seen == SeenBy::some_ranks) std::fprintf(stderr, "mpi4dl: %s\n", sentence.c_str());
  std::fflush(nullptr);
  std::_Exit(2);
}

}  // namespace mpi4dl
