# The .deb package of lattice-run, made by `./lattice package --deb` (cpack -G DEB in build/package): the program, its
# configurations and manual page, and what Debian's policy asks for.
find_program(GZIP gzip)
if(NOT LATTICE_REPRODUCIBLE OR NOT GZIP)
  return()
endif()

# lattice_compressed(<from> <to>): a file under share/ as .gz, without its name and time.
function(lattice_compressed from to)
  get_filename_component(folder ${to} DIRECTORY)
  get_filename_component(name ${to} NAME)
  set(made ${PROJECT_BINARY_DIR}/package/${name})
  configure_file(${from} ${made} @ONLY)
  execute_process(COMMAND ${GZIP} -9nf ${made} COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${made}.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT program)
endfunction()

# The date of the commit, as Debian writes it.
string(TIMESTAMP LATTICE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(LATTICE_MAINTAINER "The Lattice project <lattice@lattice.invalid>" CACHE STRING "Who stands for the package: Name <address>")
lattice_compressed(${PROJECT_SOURCE_DIR}/tools/package/changelog.in doc/lattice-run/changelog)
lattice_compressed(${PROJECT_SOURCE_DIR}/tools/package/lattice-run.1.in man/man1/lattice-run.1)
install(FILES ${PROJECT_SOURCE_DIR}/tools/package/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/lattice-run COMPONENT program)

# Nothing but the program is built for it.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lattice-run)
set(CPACK_PACKAGE_CONTACT ${LATTICE_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs and serves Lattice language models on CPUs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Generates text with models whose memory has a constant size, and serves them\nover HTTP to OpenAI clients, with a page that shows what the memory does. Needs\nneither PyTorch nor Python.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
include(CPack)
