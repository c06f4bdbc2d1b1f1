# What the build needs of the system, checked in one go, so that one message names everything that is missing or too old.
# The oldest versions are those of Debian 12, which are the ones that are tested.
option(LATTICE_CHECK_VERSIONS "Refuse compilers and libraries that are older than those that are tested" ON)

# Adds a sentence to the list `problems` of the caller, and of its caller.
macro(lattice_problem text)
  list(APPEND problems "${text}")
  set(problems "${problems}" PARENT_SCOPE)
endmacro()

function(lattice_check_compiler)
  set(least_GNU 12)
  set(least_Clang 14)
  set(least ${least_${CMAKE_CXX_COMPILER_ID}})
  if(least AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS least AND LATTICE_CHECK_VERSIONS)
    lattice_problem("compiler: found ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} (${CMAKE_CXX_COMPILER}), needed GCC 12 or Clang 14, or newer. Name another one, e.g. CXX=g++-12, and remove ${CMAKE_BINARY_DIR}")
  endif()
  if(CMAKE_CXX_BYTE_ORDER STREQUAL BIG_ENDIAN)
    lattice_problem("machine: ${CMAKE_SYSTEM_PROCESSOR} is big-endian, and Lattice's files are little-endian and used in place")
  endif()
endfunction()

# lattice_check_library(Highway 1.0.3 libhwy-dev HEADER hwy/highway.h [LIBRARY hwy] MACROS HWY_MAJOR HWY_MINOR [HWY_PATCH]
# FILES hwy/highway.h | PKG_CONFIG name). The version is that of the macros in the first of FILES that has them, or
# pkg-config's; a version that cannot be found out is not checked.
function(lattice_check_library name least package)
  cmake_parse_arguments(ARG "" "HEADER;LIBRARY;PKG_CONFIG" "MACROS;FILES" ${ARGN})
  set(wanted "needed ${least} or newer (Debian's ${package})")
  find_path(LATTICE_${name}_INCLUDE ${ARG_HEADER})
  mark_as_advanced(LATTICE_${name}_INCLUDE)
  if(NOT LATTICE_${name}_INCLUDE)
    lattice_problem("${name}: found no ${ARG_HEADER}, ${wanted}")
    return()
  endif()
  if(ARG_LIBRARY)
    find_library(LATTICE_${name}_LIBRARY ${ARG_LIBRARY})
    mark_as_advanced(LATTICE_${name}_LIBRARY)
    if(NOT LATTICE_${name}_LIBRARY)
      lattice_problem("${name}: found ${LATTICE_${name}_INCLUDE}/${ARG_HEADER}, but no library ${ARG_LIBRARY}, ${wanted}")
      return()
    endif()
  endif()
  lattice_library_version("${LATTICE_${name}_INCLUDE}" version)
  if(version AND version VERSION_LESS least AND LATTICE_CHECK_VERSIONS)
    lattice_problem("${name}: found ${version} in ${LATTICE_${name}_INCLUDE}, ${wanted}")
  endif()
endfunction()

# Reads ARG_MACROS, ARG_FILES and ARG_PKG_CONFIG of the caller.
function(lattice_library_version include out)
  set(numbers)
  foreach(file ${ARG_FILES})
    if(NOT numbers AND EXISTS ${include}/${file})
      foreach(macro ${ARG_MACROS})
        file(STRINGS ${include}/${file} line REGEX "# *define +${macro} +[0-9]+" LIMIT_COUNT 1)
        if(line MATCHES "${macro} +([0-9]+)")
          list(APPEND numbers ${CMAKE_MATCH_1})
        endif()
      endforeach()
    endif()
  endforeach()
  list(JOIN numbers . version)
  find_package(PkgConfig QUIET)
  if(ARG_PKG_CONFIG AND PKG_CONFIG_FOUND)
    execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --modversion ${ARG_PKG_CONFIG} OUTPUT_VARIABLE version
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

function(lattice_check_requirements)
  set(problems)
  lattice_check_compiler()
  lattice_check_library(Highway 1.0.3 libhwy-dev HEADER hwy/highway.h LIBRARY hwy
                        MACROS HWY_MAJOR HWY_MINOR HWY_PATCH FILES hwy/highway.h hwy/base.h)
  lattice_check_library(CLI11 2.1.2 libcli11-dev HEADER CLI/CLI.hpp
                        MACROS CLI11_VERSION_MAJOR CLI11_VERSION_MINOR CLI11_VERSION_PATCH FILES CLI/Version.hpp)
  lattice_check_library(nlohmann-json 3.11.2 nlohmann-json3-dev HEADER nlohmann/json.hpp
                        MACROS NLOHMANN_JSON_VERSION_MAJOR NLOHMANN_JSON_VERSION_MINOR NLOHMANN_JSON_VERSION_PATCH
                        FILES nlohmann/detail/abi_macros.hpp nlohmann/json.hpp)
  lattice_check_library(toml++ 3.3.0 libtomlplusplus-dev HEADER toml++/toml.h
                        MACROS TOML_LIB_MAJOR TOML_LIB_MINOR TOML_LIB_PATCH FILES toml++/impl/version.h toml++/toml.h)
  lattice_check_library(SentencePiece 0.1.97 libsentencepiece-dev HEADER sentencepiece_processor.h LIBRARY sentencepiece
                        PKG_CONFIG sentencepiece)
  lattice_check_library(zstd 1.5.4 libzstd-dev HEADER zstd.h LIBRARY zstd
                        MACROS ZSTD_VERSION_MAJOR ZSTD_VERSION_MINOR ZSTD_VERSION_RELEASE FILES zstd.h)
  if(problems)
    list(JOIN problems "\n  " text)
    message(FATAL_ERROR "Lattice cannot be built here:\n  ${text}\n"
                        "./lattice setup names your system's packages. To try older versions: -DLATTICE_CHECK_VERSIONS=OFF")
  endif()
endfunction()
