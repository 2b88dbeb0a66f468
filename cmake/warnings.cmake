# How our own code is compiled; dependencies are system headers and stay out of it.
add_library(mpi4dl_build_flags INTERFACE)
target_compile_options(mpi4dl_build_flags INTERFACE -Wall -Wextra
                       $<$<BOOL:${MPI4DL_WERROR}>:-Werror>)
# _GLIBCXX_DEBUG would change the layout of containers that libtorch shares with us. Its own classes
# have more members without NDEBUG, with which Debian's library was built; so our own preconditions are
# switched by MPI4DL_CHECKS (base/expects.hpp).
target_compile_definitions(mpi4dl_build_flags INTERFACE
                           $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS> $<$<CONFIG:Debug>:NDEBUG>
                           $<$<CONFIG:Debug>:MPI4DL_CHECKS>)
if(MPI4DL_SANITIZE)
  # Debian's libtorch has no type information for its vtables, hence no -fsanitize=vptr. Without any
  # optimisation our kernels are too slow for the tests' time limits; with it gcc sees ghosts.
  set(sanitize -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined
      -fno-omit-frame-pointer -O1 -Wno-maybe-uninitialized)
  target_compile_options(mpi4dl_build_flags INTERFACE ${sanitize})
  target_link_options(mpi4dl_build_flags INTERFACE ${sanitize})
endif()
if(MPI4DL_FUZZ)
  target_compile_options(mpi4dl_build_flags INTERFACE -fsanitize=fuzzer-no-link)  # counts what runs
endif()
