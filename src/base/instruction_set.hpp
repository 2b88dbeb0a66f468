#pragma once

#include <array>
#include <string_view>
#include <vector>

// The one place that asks which vector instructions the processor has. Kernels are compiled for
// several sets of them, and are handed the set that they may use; the environment variable
// MPI4DL_MAX_ISA caps it (as ONEDNN_MAX_CPU_ISA does for oneDNN), so that every path can be tested
// and timed on a processor that has more.

namespace mpi4dl {

/// Each set contains those before it: sse2 is the baseline of x86-64 (and stands for that of other
/// architectures), avx2 is x86-64-v3, avx512 is x86-64-v4, and amx adds AVX512_BF16 and AMX_BF16.
enum class InstructionSet { sse2, avx2, avx512, amx };

inline constexpr std::array kInstructionSets{InstructionSet::sse2, InstructionSet::avx2,
                                             InstructionSet::avx512, InstructionSet::amx};

/// Returns the name that MPI4DL_MAX_ISA knows a set by.
std::string_view name_of(InstructionSet set);

/// Reads such a name, and throws UsageError where it is none.
InstructionSet read_instruction_set(std::string_view name);

/// Returns the largest set that the processor has, the system lets this process use, and
/// MPI4DL_MAX_ISA allows. The answer is found once; a wrong variable throws UsageError every time.
InstructionSet instruction_set();

/// Returns all sets up to `largest`, for tests that run each.
std::vector<InstructionSet> instruction_sets(InstructionSet largest = instruction_set());

/// Returns true where `set` has vector instructions that multiply bfloat16 (AVX512_BF16), which
/// oneDNN knows how to use.
bool has_avx512_bf16(InstructionSet set);

/// Keeps oneDNN from ending the process with an illegal instruction. It asks the processor how
/// large the tile registers of AMX are; some virtual machines announce AMX but not their size, and
/// there this sets ONEDNN_MAX_CPU_ISA so that oneDNN leaves AMX alone, unless somebody has set it
/// already. Must be called before threads and oneDNN start; processes started later inherit it.
void keep_onednn_from_amx_of_unknown_size();

}  // namespace mpi4dl
