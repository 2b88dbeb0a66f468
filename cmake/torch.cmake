# libtorch, as the target mpi4dl::torch: Debian's, that of PyTorch's wheel from pip, or a folder's. Found by hand:
# Debian's TorchConfig.cmake pulls in Caffe2's development packages; the wheel's wants nvcc, and takes Debian's
# libraries beside its own where both are there.
set(MPI4DL_TORCH auto CACHE STRING
    "Which libtorch: debian, python (the wheel of python3), a folder with include/ and lib/, or auto (the first of them)")

# Leaves the folders of Debian's libtorch in torch_include and torch_lib, empty where it has none.
function(_mpi4dl_debian_torch)
  find_path(include ATen/ATen.h PATHS /usr/include NO_DEFAULT_PATH NO_CACHE)
  find_library(library torch PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib NO_DEFAULT_PATH NO_CACHE)
  if(include AND library)
    cmake_path(GET library PARENT_PATH lib)
    set(torch_include ${include} PARENT_SCOPE)
    set(torch_lib ${lib} PARENT_SCOPE)
  endif()
endfunction()

# Leaves the folder of the Python package torch in torch_folder, empty where there is none; and the interpreter that
# was asked, without running torch, in torch_python.
function(_mpi4dl_python_torch)
  if(Python3_EXECUTABLE)
    set(python ${Python3_EXECUTABLE})
  elseif(DEFINED ENV{VIRTUAL_ENV})
    set(python $ENV{VIRTUAL_ENV}/bin/python3)
  else()
    find_program(python python3 NO_CACHE)
  endif()
  set(question "import importlib.util, os; s = importlib.util.find_spec('torch')
print(os.path.dirname(s.origin) if s and s.origin else '', end='')")
  execute_process(COMMAND ${python} -c "${question}" WORKING_DIRECTORY / OUTPUT_VARIABLE folder ERROR_QUIET)
  set(torch_python ${python} PARENT_SCOPE)
  set(torch_folder ${folder} PARENT_SCOPE)
endfunction()

# Whether FOLDER is what a wheel or an archive of libtorch unpacks to.
function(_mpi4dl_has_torch folder result)
  set(${result} TRUE PARENT_SCOPE)
  foreach(file include/ATen/ATen.h lib/libtorch.so lib/libtorch_cpu.so lib/libc10.so)
    if(NOT EXISTS ${folder}/${file})
      set(${result} FALSE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

set(torch_include)
set(torch_lib)
set(torch_folder)
if(MPI4DL_TORCH MATCHES "^(auto|debian)$")
  _mpi4dl_debian_torch()
  if(MPI4DL_TORCH STREQUAL debian AND NOT torch_lib)
    message(FATAL_ERROR "MPI4DL_TORCH=debian: there is no libtorch in /usr; install libtorch-dev")
  endif()
endif()
if(NOT torch_lib)
  if(MPI4DL_TORCH MATCHES "^(auto|python)$")
    _mpi4dl_python_torch()
    _mpi4dl_has_torch("${torch_folder}" usable)
    if(NOT usable)
      message(FATAL_ERROR "MPI4DL_TORCH=${MPI4DL_TORCH}: python3 (${torch_python}) has no torch with a lib/libtorch.so "
                          "of its own; install one by ${torch_python} -m pip install torch, or Debian's libtorch-dev")
    endif()
    # The folder from now on: CMake runs again by itself, with another PATH.
    set(MPI4DL_TORCH ${torch_folder} CACHE STRING "" FORCE)
  else()
    get_filename_component(torch_folder "${MPI4DL_TORCH}" ABSOLUTE)
    _mpi4dl_has_torch("${torch_folder}" usable)
    if(NOT usable)
      message(FATAL_ERROR "MPI4DL_TORCH=${MPI4DL_TORCH} is neither auto, debian nor python, nor a folder with "
                          "include/ATen/ATen.h and lib/libtorch.so")
    endif()
  endif()
  set(torch_lib ${torch_folder}/lib)
  # Headers of fmt and oneDNN lie beside its own, and would hide those of the libraries that we link.
  set(torch_include ${CMAKE_BINARY_DIR}/libtorch)
  file(MAKE_DIRECTORY ${torch_include})
  foreach(name ATen c10 caffe2 torch)
    file(CREATE_LINK ${torch_folder}/include/${name} ${torch_include}/${name} SYMBOLIC)
  endforeach()
endif()

# With the other of the two forms that std::string has, nothing would link to Debian's fmt and GoogleTest.
file(STRINGS ${torch_lib}/libc10.so torch_error REGEX "^_ZN3c105ErrorC.*NSt7__cxx1112basic_string" LIMIT_COUNT 1)
if(NOT torch_error)
  message(FATAL_ERROR "libtorch in ${torch_lib} is built with _GLIBCXX_USE_CXX11_ABI=0, unlike what else is linked here; "
                      "take another, such as PyTorch's wheel of version 2.7 or later")
endif()

# Libraries that only register themselves, as CUDA's do, are needed though nothing calls them.
set(CMAKE_CXX_LINK_LIBRARY_USING_KEPT "LINKER:--push-state,--no-as-needed" "<LINK_ITEM>" "LINKER:--pop-state")
set(CMAKE_CXX_LINK_LIBRARY_USING_KEPT_SUPPORTED TRUE)
add_library(mpi4dl_torch INTERFACE)
add_library(mpi4dl::torch ALIAS mpi4dl_torch)
target_include_directories(mpi4dl_torch SYSTEM INTERFACE ${torch_include} ${torch_include}/torch/csrc/api/include)
foreach(name torch torch_cpu torch_cuda c10 c10_cuda)
  if(EXISTS ${torch_lib}/lib${name}.so)
    add_library(mpi4dl::lib${name} SHARED IMPORTED)
    set_target_properties(mpi4dl::lib${name} PROPERTIES IMPORTED_LOCATION ${torch_lib}/lib${name}.so)
    target_link_libraries(mpi4dl_torch INTERFACE $<LINK_LIBRARY:KEPT,mpi4dl::lib${name}>)
  endif()
endforeach()

# A process has one OpenMP runtime: libtorch's own, where it brings one. at::parallel_for is compiled into us, and asks
# for the same threads.
file(GLOB torch_gomp ${torch_folder}/lib/libgomp*.so*)
add_library(mpi4dl_openmp INTERFACE)
if(torch_folder AND torch_gomp)
  target_compile_options(mpi4dl_openmp INTERFACE ${OpenMP_CXX_FLAGS})
  target_link_libraries(mpi4dl_openmp INTERFACE ${torch_gomp})
else()
  target_link_libraries(mpi4dl_openmp INTERFACE OpenMP::OpenMP_CXX)
endif()

# One line about what was found; versions are where they differ between 1.13 and 2.x.
set(torch_version unknown)
foreach(file torch/csrc/api/include/torch/version.h torch/headeronly/version.h)
  if(EXISTS ${torch_include}/${file})
    file(READ ${torch_include}/${file} text)
    if(text MATCHES "define TORCH_VERSION[ \\\n]+\"([^\"]+)\"")
      set(torch_version ${CMAKE_MATCH_1})
    endif()
  endif()
endforeach()
set(torch_cuda "without CUDA")
if(TARGET mpi4dl::libtorch_cuda)
  set(torch_cuda "with CUDA")
  if(EXISTS "${torch_folder}/version.py")
    file(STRINGS ${torch_folder}/version.py text REGEX "^cuda")
    if(text MATCHES "'([0-9.]+)'")
      set(torch_cuda "with CUDA ${CMAKE_MATCH_1}")
    endif()
  endif()
endif()
# In C++20 clang rejects the headers of libtorch 1.13 unless it sees the definition of IValue first.
if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND torch_version VERSION_LESS 2)
  target_compile_options(mpi4dl_torch INTERFACE "SHELL:-include ATen/core/ivalue.h")
endif()
message(STATUS "libtorch ${torch_version} in ${torch_lib}, ${torch_cuda}, C++11 ABI")
