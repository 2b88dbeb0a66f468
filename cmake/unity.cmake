# Most of the time of a compilation goes into headers of libtorch and CLI11, whatever follows them.
# With MPI4DL_UNITY, source files of a folder are compiled together, a few at a time.
option(MPI4DL_UNITY "Compile source files in groups: the first build is shorter, a later one longer" ON)

# mpi4dl_unite(TARGET SIZE [FOLDER_OR_FILE...]): groups the source files of a target, those of one folder at
# most SIZE at a time, and leaves those that are named, or whose folder is, alone.
function(mpi4dl_unite target size)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MPI4DL_UNITY} UNITY_BUILD_MODE GROUP)
  # gcc takes source files that are included for headers.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  get_target_property(files ${target} SOURCES)
  foreach(file IN LISTS files)
    get_filename_component(folder ${file} DIRECTORY)
    if(folder IN_LIST ARGN OR file IN_LIST ARGN)
      set_source_files_properties(${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR before "0${before_${folder}}")
    math(EXPR group "${before} / ${size}")
    math(EXPR before_${folder} "${before} + 1")
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${target}_${folder}_${group})
  endforeach()
endfunction()
