# What we stand on: libtorch, MPI, libvips, zlib, fmt, CLI11 and nlohmann-json, as Debian ships them.
set(MPI_CXX_SKIP_MPICXX ON)  # the old C++ bindings are not wanted
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(VIPS REQUIRED IMPORTED_TARGET vips)
pkg_check_modules(TIFF REQUIRED IMPORTED_TARGET libtiff-4)

# Found by hand: Debian's TorchConfig.cmake pulls in Caffe2's development packages, which nobody needs.
find_path(TORCH_INCLUDE_DIR ATen/ATen.h REQUIRED)
find_path(TORCH_API_INCLUDE_DIR torch/torch.h
          PATHS ${TORCH_INCLUDE_DIR}/torch/csrc/api/include NO_DEFAULT_PATH REQUIRED)
find_library(TORCH_LIBRARY torch REQUIRED)
find_library(TORCH_CPU_LIBRARY torch_cpu REQUIRED)
find_library(C10_LIBRARY c10 REQUIRED)
add_library(torch_headers_and_libraries INTERFACE)
target_include_directories(torch_headers_and_libraries SYSTEM INTERFACE
                           ${TORCH_INCLUDE_DIR} ${TORCH_API_INCLUDE_DIR})
target_link_libraries(torch_headers_and_libraries INTERFACE
                      ${TORCH_LIBRARY} ${TORCH_CPU_LIBRARY} ${C10_LIBRARY})
add_library(mpi4dl::torch ALIAS torch_headers_and_libraries)
