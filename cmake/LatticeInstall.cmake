# `cmake --install build/release --prefix X` installs lattice-run, and what outside programs may use: the kernels and the
# runtime (no torch) and, where they are built, the torch operators. examples/find_package and examples/runtime show the other side.
#
# Headers keep their folders under include/lattice, and that directory is an include path of the targets: they include
# each other as "kernels/isa.h" in the tree and when installed.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(lattice_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lattice)
set(lattice_header_dir ${CMAKE_INSTALL_INCLUDEDIR}/lattice)

# lattice_install(<component> <folder> <header>...) installs lattice_<folder> and its public headers. A component has an
# export file of its own, so that a program without torch never sees the operators.
function(lattice_install component folder)
  set_target_properties(lattice_${folder} PROPERTIES EXPORT_NAME ${folder})
  target_include_directories(lattice_${folder} INTERFACE $<INSTALL_INTERFACE:${lattice_header_dir}>
                                                         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS lattice_${folder} EXPORT lattice_${component} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  foreach(header ${ARGN})
    get_filename_component(below ${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/src/${folder}/${header} DESTINATION ${lattice_header_dir}/${folder}/${below})
  endforeach()
endfunction()

function(lattice_export component)
  install(EXPORT lattice_${component} NAMESPACE lattice:: DESTINATION ${lattice_package_dir}
          FILE lattice-${component}.cmake)
endfunction()

lattice_install(kernels base error.h export.h random.h)
# With the headers of the engine, which a rule of one's own is compiled with.
lattice_install(kernels kernels dispatch.h isa.h kernel_set.h memory.h plugin.h problem.h registry.h dense/matmul.h
                engine/arena.h engine/cell-inl.h engine/engine-inl.h engine/prefetch_queue.h engine/update-inl.h
                engine/vec-inl.h engine/workspace-inl.h lanes-inl.h reference/math.h
                reference/reference.h)
set_target_properties(lattice_hwy PROPERTIES EXPORT_NAME hwy)
set_target_properties(lattice_rule PROPERTIES EXPORT_NAME rule)
install(TARGETS lattice_hwy lattice_rule EXPORT lattice_kernels)
lattice_export(kernels)
lattice_install(runtime io checksum.h dtype.h file.h safetensors.h)
lattice_install(runtime model config.h tensors.h)
lattice_install(runtime text tokenizer.h)
lattice_install(runtime runtime engine.h generator.h lattice.h model.h prefix_cache.h sampler.h session.h state.h step_figures.h weights.h)
lattice_export(runtime)
install(TARGETS lattice_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET lattice_ops)
  lattice_install(ops ops recurrence.h)
  lattice_export(ops)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/LatticeTorch.cmake DESTINATION ${lattice_package_dir})
endif()

# The program that runs models, and the configurations where it looks for them (src/io/project_files.h).
install(TARGETS lattice_run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/lattice COMPONENT program FILES_MATCHING PATTERN *.toml
        PATTERN reproduce EXCLUDE)

# The wheel (pyproject.toml): libraries where python/lattice/_library.py looks for them, programs and configurations
# beside them. torch is in the neighbouring directory; a process of Python has it loaded already.
function(lattice_install_for_python)
  install(TARGETS lattice_c LIBRARY DESTINATION lattice/lib COMPONENT python EXCLUDE_FROM_ALL)
  install(TARGETS lattice_run RUNTIME DESTINATION lattice/bin COMPONENT python EXCLUDE_FROM_ALL)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION lattice/share/lattice COMPONENT python EXCLUDE_FROM_ALL
          FILES_MATCHING PATTERN *.toml PATTERN reproduce EXCLUDE)
  if(NOT LATTICE_TORCH)
    return()
  endif()
  set_target_properties(lattice_ops PROPERTIES INSTALL_RPATH "$ORIGIN/../../torch/lib")
  set_target_properties(lattice_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../lib;$ORIGIN/../../torch/lib")
  install(TARGETS lattice_ops LIBRARY DESTINATION lattice/lib COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES ${LATTICE_TORCH_NOTE} DESTINATION lattice/lib COMPONENT python EXCLUDE_FROM_ALL)
  install(TARGETS lattice_cli RUNTIME DESTINATION lattice/bin COMPONENT python EXCLUDE_FROM_ALL)
endfunction()
lattice_install_for_python()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/latticeConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/latticeConfig.cmake INSTALL_DESTINATION ${lattice_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/latticeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/latticeConfig.cmake ${PROJECT_BINARY_DIR}/latticeConfigVersion.cmake
        DESTINATION ${lattice_package_dir})
