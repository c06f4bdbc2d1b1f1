# Shared settings of every target: language level, warnings, sanitizers, ccache, and two helpers that keep the
# per-folder lists short.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The precompiled torch header needs the sloppiness settings. Paths are hashed relative to the source tree, so that a second
  # clone of the same commit finds most of them in the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE})
endif()

if(EMSCRIPTEN)
  # A page has one thread: more need a server that isolates it from other origins. std::mutex is there all the same.
  add_library(Threads::Threads INTERFACE IMPORTED)
else()
  find_package(Threads REQUIRED)
endif()

# lattice-run as one file that needs nothing of the system (`./lattice package`).
option(LATTICE_STATIC "Link lattice-run statically; needs static libraries of everything it uses" OFF)
if(LATTICE_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(OPENSSL_USE_STATIC_LIBS ON)
endif()
# Paths in what is built begin at the source tree, so that the same sources give the same bytes in any directory.
option(LATTICE_REPRODUCIBLE "Leave no path of this machine in the programs" OFF)
if(LATTICE_REPRODUCIBLE)
  add_compile_options(-ffile-prefix-map=${CMAKE_BINARY_DIR}=build -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
endif()

add_library(lattice_settings INTERFACE)
target_include_directories(lattice_settings INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/src>)
# No contraction behind our back and no fast-math: a fused multiply-add appears where the code says so, so results
# are the same in every build type.
target_compile_options(lattice_settings INTERFACE -Wall -Wextra -Wshadow -Wno-unknown-pragmas -ffp-contract=off)
if(LATTICE_WERROR)
  target_compile_options(lattice_settings INTERFACE -Werror)
endif()
if(LATTICE_SANITIZE)
  target_compile_options(lattice_settings INTERFACE -fsanitize=${LATTICE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(lattice_settings INTERFACE -fsanitize=${LATTICE_SANITIZE})
endif()

# Mitigations for faults that tests have missed; tests/test_release.py reads them off the programs of a build that has them.
# Sanitizers find more, and do not work with _FORTIFY_SOURCE. A WebAssembly module has its stack of calls out of reach of its
# memory, and no linker that knows these options.
if(LATTICE_HARDEN AND NOT LATTICE_SANITIZE AND NOT EMSCRIPTEN)
  target_compile_options(lattice_settings INTERFACE -fstack-protector-strong -fstack-clash-protection
                         $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(lattice_settings INTERFACE -fcf-protection)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    target_compile_options(lattice_settings INTERFACE -mbranch-protection=standard)
  endif()
  target_link_options(lattice_settings INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
# Programs are linked as position-independent, too; by default CMake only compiles them so. Static ones have flags of their own.
if(NOT LATTICE_STATIC)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES CXX)
endif()
# Nothing of a program depends on where it was built: two builds of a commit are the same bytes.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# The release preset compiles several files of a folder in one go (CMAKE_UNITY_BUILD): a header such as torch's costs
# more than most of our files. These stay alone, because a neighbour has private names like theirs.
function(lattice_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# lattice_add_library(base FILES a.cc LINK x y [PRIVATE z]) makes the static library lattice_base.
function(lattice_add_library name)
  cmake_parse_arguments(ARG "" "" "FILES;LINK;PRIVATE" ${ARGN})
  add_library(lattice_${name} STATIC ${ARG_FILES})
  add_library(lattice::${name} ALIAS lattice_${name})
  target_link_libraries(lattice_${name} PUBLIC ${ARG_LINK} PRIVATE $<BUILD_INTERFACE:lattice_settings> ${ARG_PRIVATE})
  target_include_directories(lattice_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
endfunction()

# lattice_add_test(io_json_test FILES json_test.cc LINK lattice::io) builds a GoogleTest program and registers it.
# The test's working directory is the source tree, so that it can read tests/data.
function(lattice_add_test name)
  if(NOT LATTICE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "FILES;LINK" ${ARGN})
  add_executable(${name} ${ARG_FILES})
  if(LATTICE_SANITIZE)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/sanitizer_options.cc)
  endif()
  target_link_libraries(${name} PRIVATE lattice_settings ${ARG_LINK} GTest::gtest_main Threads::Threads)
  if(CMAKE_CROSSCOMPILING)
    # Compiling takes longer than running once, also by emulation. The libraries under test are compiled as they ship.
    target_compile_options(${name} PRIVATE -O1)
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()
