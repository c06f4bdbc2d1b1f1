# libtorch as the imported target lattice::torch, made from the files of a torch wheel or of a libtorch archive. The
# tree and the installed package (latticeConfig.cmake) both use this file.
#
# torch's own CMake package is not used: that of the CUDA build stops where no CUDA toolkit is installed, though our
# code needs nothing but libtorch_cpu, libc10 and their headers, which are the same in every build of a version.

# lattice_find_torch(<version> <problem> [<directory>...]) defines lattice::torch from LATTICE_TORCH_DIR, or where that is
# not set from the first of CMAKE_PREFIX_PATH and the given directories that is torch, or its share/cmake, or the
# site-packages that it was installed to. <problem> becomes empty, or says why there is no lattice::torch: none was found,
# or the first is of another version than <version>.
function(lattice_find_torch version problem)
  set(places ${LATTICE_TORCH_DIR})
  if(NOT places)
    file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" environment)
    set(places ${CMAKE_PREFIX_PATH} ${environment} ${ARGN})
  endif()
  set(${problem} "" PARENT_SCOPE)
  foreach(directory IN LISTS places)
    foreach(root ${directory} ${directory}/../.. ${directory}/torch)
      if(EXISTS ${root}/lib/libtorch_cpu.so AND EXISTS ${root}/include/torch/headeronly/version.h)
        get_filename_component(root ${root} ABSOLUTE)
        lattice_torch_version(${root} found)
        if(NOT found VERSION_EQUAL version)
          set(${problem} "torch ${version} is needed exactly (libtorch promises no binary compatibility between versions), but ${root} holds ${found}" PARENT_SCOPE)
        elseif(NOT TARGET lattice::torch)
          lattice_import_torch(${root})
          message(STATUS "torch: ${found} of ${root}")
        endif()
        return()
      endif()
    endforeach()
  endforeach()
  string(REPLACE ";" ", " searched "${places}")
  set(${problem} "no torch ${version} (lib/libtorch_cpu.so and its headers) was found; looked at: ${searched}" PARENT_SCOPE)
endfunction()

function(lattice_torch_version root result)
  file(STRINGS ${root}/include/torch/headeronly/version.h lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  string(REPLACE ";" "." version "${numbers}")
  set(${result} ${version} PARENT_SCOPE)
endfunction()

function(lattice_import_torch root)
  add_library(lattice::torch SHARED IMPORTED GLOBAL)
  # The headers of an imported target give no warnings. The definitions are those that torch_cpu is built with. The
  # C++11 ABI of the standard library, which these wheels have, is the compiler's default.
  set_target_properties(lattice::torch PROPERTIES
    IMPORTED_LOCATION ${root}/lib/libtorch_cpu.so
    IMPORTED_SONAME libtorch_cpu.so
    INTERFACE_INCLUDE_DIRECTORIES "${root}/include;${root}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_RPC;USE_TENSORPIPE"
    INTERFACE_LINK_LIBRARIES ${root}/lib/libc10.so
    # libtorch_cpu of the CUDA build calls libcudart and libcupti, which are packages of their own: a program can be
    # linked where they are not installed, and finds them at its start where they are.
    INTERFACE_LINK_OPTIONS LINKER:--allow-shlib-undefined)
endfunction()
