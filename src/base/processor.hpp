#pragma once

namespace mpi4dl {

/// Instructions that multiply bfloat16 (AVX512_BF16 of x86-64).
bool has_bfloat16_instructions();

/// oneDNN asks the processor how large the registers of its matrix unit are. Some virtual machines
/// announce the unit but not their size, and then its kernels for bfloat16 end the process with an
/// illegal instruction. There this tells oneDNN, through ONEDNN_MAX_CPU_ISA, to leave the unit
/// alone, unless somebody has set that already. To be called before threads and oneDNN start;
/// processes started later inherit it.
void keep_onednn_from_matrix_unit_of_unknown_size();

}  // namespace mpi4dl
