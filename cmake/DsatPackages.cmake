# Debian packages of what is installed: cpack -G DEB in a folder that scripts/packages configures. A component is a
# package: dsat (what tunes), libdsat1 (libdsat.so), dsat-trainer (dsat-trial), libdsat-dev (what is built against).
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime embed dev)
if(DSAT_TRAINER)
  list(APPEND CPACK_COMPONENTS_ALL trainer)
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "dsat maintainers <maintainers@dsat.invalid>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME dsat)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
  "finds the fastest DeepSpeed configuration of a training command
dsat-host runs short trials of your own training command, learns from each
which ZeRO stage, micro batch and buckets fit and which are fast, and writes
a configuration file that is ready to train with.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS python3)

set(CPACK_DEBIAN_EMBED_PACKAGE_NAME libdsat1)
set(CPACK_DEBIAN_EMBED_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_EMBED_DESCRIPTION
  "finds the fastest DeepSpeed configuration of a training command: library
Programs that tune with libdsat.so need this package.")
set(CPACK_DEBIAN_EMBED_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_EMBED_PACKAGE_DEPENDS "dsat (= ${PROJECT_VERSION}-1)")

set(CPACK_DEBIAN_TRAINER_PACKAGE_NAME dsat-trainer)
set(CPACK_COMPONENT_TRAINER_DESCRIPTION
  "trains as a DeepSpeed configuration says, on processors
dsat-trial trains a model over processes with the ZeRO stages of a DeepSpeed
configuration: a training command to try dsat-host on without a GPU.")
set(CPACK_DEBIAN_TRAINER_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TRAINER_PACKAGE_RECOMMENDS "dsat, libopenblas0-pthread")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libdsat-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DESCRIPTION
  "headers and libraries for searchers and for programs that tune
With these files plugins of dsat-host are written in C and C++, and programs
run studies by themselves.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "dsat (= ${PROJECT_VERSION}-1), libdsat1 (= ${PROJECT_VERSION}-1), nlohmann-json3-dev, libfmt-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "cmake, g++")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS
  "libeigen3-dev, libsqlite3-dev, libre2-dev, libboost-filesystem-dev, libssl-dev, libyaml-cpp-dev, libtorch-dev")

# What Debian asks of every package.
find_program(DSAT_GZIP gzip)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, where it is set
set(debian ${PROJECT_BINARY_DIR}/debian)
file(WRITE ${debian}/changelog.Debian "dsat (${PROJECT_VERSION}-1) unstable; urgency=medium\n\n"
  "  * Release ${PROJECT_VERSION}.\n\n -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}\n")
file(WRITE ${debian}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
  "Upstream-Name: dsat\n\nFiles: *\nCopyright: the dsat contributors\nLicense: Apache-2.0\n"
  " On Debian systems, the complete text of the Apache License 2.0 is in\n /usr/share/common-licenses/Apache-2.0.\n")
file(WRITE ${debian}/shlibs "libdsat 1 libdsat1 (>= ${PROJECT_VERSION})\n")
file(WRITE ${debian}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_EMBED_PACKAGE_CONTROL_EXTRA ${debian}/shlibs ${debian}/triggers)
execute_process(COMMAND ${DSAT_GZIP} -9nf ${debian}/changelog.Debian)
foreach(pair runtime:dsat embed:libdsat1 trainer:dsat-trainer dev:libdsat-dev)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 part)
  list(GET pair 1 package)
  if(part IN_LIST CPACK_COMPONENTS_ALL)
    install(FILES ${debian}/changelog.Debian.gz ${debian}/copyright
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${part})
  endif()
endforeach()

# The system's Python finds the package dsat, which scripts get by PYTHONPATH.
file(CREATE_LINK ../../../share/dsat/python/dsat ${debian}/dsat SYMBOLIC)
install(FILES ${debian}/dsat DESTINATION lib/python3/dist-packages COMPONENT runtime)
include(CPack)
