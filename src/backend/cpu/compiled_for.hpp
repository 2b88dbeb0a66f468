#pragma once

#include "base/instruction_set.hpp"

// Code that is compiled once for each instruction set. gcc and clang do that by an attribute of a
// function, which no template parameter can choose; so there is one function template a set here,
// and everything else is written once, as a type whose static function `run` is inlined into them.
// What `run` calls must be inlined too, or it is compiled for the baseline: gcc does so with all of
// it (flatten), clang with one level and whatever is always_inline.

namespace mpi4dl {

template <typename Kernel, typename... Args>
[[gnu::flatten]] void run_sse2(Args... args) {
  Kernel::run(args...);
}

#ifdef __x86_64__
template <typename Kernel, typename... Args>
[[gnu::target("arch=x86-64-v3"), gnu::flatten]] void run_avx2(Args... args) {
  Kernel::run(args...);
}

template <typename Kernel, typename... Args>
[[gnu::target("arch=x86-64-v4"), gnu::flatten]] void run_avx512(Args... args) {
  Kernel::run(args...);
}
#endif

template <typename... Args>
using Compiled = void (*)(Args...);

/// Returns `Kernel::run` as compiled for a set, which AMX adds no vector instructions to.
template <typename Kernel, typename... Args>
constexpr Compiled<Args...> compiled_for(InstructionSet set) {
#ifdef __x86_64__
  if (set >= InstructionSet::avx512) return run_avx512<Kernel, Args...>;
  if (set == InstructionSet::avx2) return run_avx2<Kernel, Args...>;
#endif
  return run_sse2<Kernel, Args...>;
}

}  // namespace mpi4dl
