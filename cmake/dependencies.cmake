# What we stand on: libtorch, MPI, libvips, zlib, fmt, CLI11 and nlohmann-json, as Debian ships them; libtorch may be another.
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
include(cmake/torch.cmake)
