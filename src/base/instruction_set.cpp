#include "base/instruction_set.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mpi4dl {
namespace {

constexpr std::array<std::string_view, kInstructionSets.size()> kNames{"sse2", "avx2", "avx512",
                                                                       "amx"};

#ifdef __x86_64__

/// Linux lets a process use the tile registers of AMX only after it has asked, by arch_prctl(2).
bool may_use_tile_registers() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool processor_has(InstructionSet set) {
  switch (set) {
    case InstructionSet::sse2:
      return true;
    case InstructionSet::avx2:
      return __builtin_cpu_supports("x86-64-v3") != 0;
    case InstructionSet::avx512:
      return __builtin_cpu_supports("x86-64-v4") != 0;
    case InstructionSet::amx:
      return __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_supports("amx-bf16") != 0 &&
             may_use_tile_registers();
  }
  return false;
}

#else

bool processor_has(InstructionSet set) {
  return set == InstructionSet::sse2;
}

#endif

InstructionSet largest_allowed() {
  const char* name = std::getenv("MPI4DL_MAX_ISA");
  return name == nullptr ? kInstructionSets.back() : read_instruction_set(name);
}

}  // namespace

std::string_view name_of(InstructionSet set) {
  return kNames.at(static_cast<size_t>(set));
}

InstructionSet read_instruction_set(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  validate(found != kNames.end(),
           "MPI4DL_MAX_ISA={} names no instruction set; it may be sse2, avx2, avx512 or amx", name);
  return kInstructionSets.at(static_cast<size_t>(found - kNames.begin()));
}

InstructionSet instruction_set() {
  static const InstructionSet found = [] {
    InstructionSet largest = InstructionSet::sse2;
    for (const InstructionSet set : instruction_sets(largest_allowed())) {
      if (!processor_has(set)) break;
      largest = set;
    }
    return largest;
  }();
  return found;
}

std::vector<InstructionSet> instruction_sets(InstructionSet largest) {
  return {kInstructionSets.begin(), kInstructionSets.begin() + static_cast<size_t>(largest) + 1};
}

#ifdef __x86_64__

bool has_avx512_bf16(InstructionSet set) {
  return set >= InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16") != 0;
}

void keep_onednn_from_amx_of_unknown_size() {
  constexpr unsigned kTileSizes = 0x1d, kFirstPalette = 1;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool known = __get_cpuid_count(kTileSizes, kFirstPalette, &a, &b, &c, &d) != 0 && a != 0;
  if (__builtin_cpu_supports("amx-tile") && !known)
    setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", /*replace=*/0);
}

#else

bool has_avx512_bf16(InstructionSet /*set*/) {
  return false;
}

void keep_onednn_from_amx_of_unknown_size() {}

#endif

}  // namespace mpi4dl
