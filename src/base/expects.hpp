#pragma once

namespace mpi4dl {

/// kChecked is true in Debug and sanitizer builds, where preconditions are checked. assert() cannot
/// say it: libtorch's classes have fewer members with NDEBUG, which is therefore defined in all our
/// builds.
#ifdef MPI4DL_CHECKS
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

/// Throws Error with the sentence, which says what a caller has promised, and the place of the
/// check.
[[noreturn]] void fail_expectation(const char* promise, const char* file, int line);

/// Checks a precondition where kChecked, and compiles to nothing elsewhere.
[[gnu::always_inline]] inline void expects(bool condition, const char* promise,
                                           const char* file = __builtin_FILE(),
                                           int line = __builtin_LINE()) {
  if constexpr (kChecked) {
    if (!condition) fail_expectation(promise, file, line);
  }
}

}  // namespace mpi4dl
