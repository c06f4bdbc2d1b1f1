# libtorch from the torch wheel of .venv (the launcher puts it on CMAKE_PREFIX_PATH).
if(NOT CMAKE_PREFIX_PATH MATCHES "torch" AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python -c "import torch; print(torch.utils.cmake_prefix_path)"
                  OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND CMAKE_PREFIX_PATH ${torch_prefix})
endif()
set(CMAKE_CUDA_ARCHITECTURES "" CACHE STRING "unused: silences the CUDA probe of TorchConfig")
find_package(Torch 2.13 REQUIRED)
# torch's headers are not ours to fix: no warnings from them.
set_property(TARGET torch APPEND PROPERTY INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${TORCH_INCLUDE_DIRS})
# at::parallel_for is a plain loop in code that is compiled without OpenMP.
find_package(OpenMP REQUIRED COMPONENTS CXX)
