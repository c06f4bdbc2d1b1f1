# Compiles for WebAssembly with SIMD by Debian's emscripten. Header-only libraries of the system are taken through links in
# the build directory: all of /usr/include would hide emscripten's own C library.
find_program(EM_CONFIG em-config REQUIRED)
execute_process(COMMAND ${EM_CONFIG} EMSCRIPTEN_ROOT OUTPUT_VARIABLE emscripten_root OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
include(${emscripten_root}/cmake/Modules/Platform/Emscripten.cmake)

# Where Debian's packages for Node.js are, for a Node.js that is not Debian's.
set(CMAKE_CXX_LINKER_LAUNCHER ${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs)
# Relaxed SIMD, whose results differ between CPUs, is off unless asked for.
set(CMAKE_CXX_FLAGS_INIT "-msimd128 -fwasm-exceptions -include ${CMAKE_CURRENT_LIST_DIR}/emscripten_std.h")

set(headers ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(library hwy nlohmann toml++)
  if(NOT EXISTS /usr/include/${library})
    message(FATAL_ERROR "/usr/include/${library} is missing; ./lattice setup installs the Debian package that has it")
  endif()
  file(CREATE_LINK /usr/include/${library} ${headers}/${library} SYMBOLIC)
endforeach()
include_directories(SYSTEM ${headers})
