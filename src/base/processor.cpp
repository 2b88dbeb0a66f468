#include "base/processor.hpp"

#include <cstdlib>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace mpi4dl {

#ifdef __x86_64__

bool has_bfloat16_instructions() {
  return __builtin_cpu_supports("avx512bf16") != 0;
}

void keep_onednn_from_matrix_unit_of_unknown_size() {
  constexpr unsigned kSizesOfTiles = 0x1d, kFirstPalette = 1;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool known = __get_cpuid_count(kSizesOfTiles, kFirstPalette, &a, &b, &c, &d) != 0 && a != 0;
  if (__builtin_cpu_supports("amx-tile") && !known)
    setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", /*replace=*/0);
}

#else

bool has_bfloat16_instructions() {
  return false;
}

void keep_onednn_from_matrix_unit_of_unknown_size() {}

#endif

}  // namespace mpi4dl
