# What `cmake --install` leaves behind: programs, plugins, headers, libraries and the package that find_package(dsat)
# finds. Parts that were not built (the trainer, say) are simply not there. The component `runtime` is what tunes, `dev`
# what is built against.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME runtime)
set(DSAT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/dsat)
set(DSAT_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR}/dsat/plugins)
set(DSAT_LAUNCHER ${CMAKE_INSTALL_LIBEXECDIR}/dsat/dsat-launch)
set(DSAT_PLUGIN_HOST ${CMAKE_INSTALL_LIBEXECDIR}/dsat/dsat-plugin-host)

# The libraries, exported as dsat::abi, dsat::sdk, dsat::base, dsat::config, dsat::cost, dsat::host and dsat::trial;
# dsat::yaml is for the host and the trainer alone, and has no headers here.
foreach(part abi sdk base config cost yaml host trial)
  if(TARGET dsat::${part})
    get_target_property(target dsat::${part} ALIASED_TARGET)
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${part})
    install(TARGETS ${target} EXPORT dsat ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  endif()
endforeach()
# libdsat.so and what it takes to link it: dsat::dsat, or pkg-config dsat.
install(TARGETS dsat_shared EXPORT dsat
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT embed NAMELINK_COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/host/cli/embed/include/dsat/dsat.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dsat COMPONENT dev)
file(RELATIVE_PATH DSAT_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/dsat.pc.in ${PROJECT_BINARY_DIR}/package/dsat.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/dsat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
install(EXPORT dsat NAMESPACE dsat:: FILE dsatTargets.cmake DESTINATION ${DSAT_PACKAGE_DIR} COMPONENT dev)

# dsat::trainer is a set of its own: only who asks for that component needs LibTorch.
if(TARGET dsat::trainer)
  set_target_properties(dsat_trial_api PROPERTIES EXPORT_NAME trainer)
  set_target_properties(dsat_trainer PROPERTIES EXPORT_NAME trainer_engine)
  set_target_properties(dsat_trainer_base PROPERTIES EXPORT_NAME trainer_base)
  install(TARGETS dsat_trial_api dsat_trainer dsat_trainer_base dsat_cli_kit dsat_event_file EXPORT dsat_trainer
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  install(EXPORT dsat_trainer NAMESPACE dsat:: FILE dsatTrainerTargets.cmake DESTINATION ${DSAT_PACKAGE_DIR}
          COMPONENT dev)
endif()

set(header_parts sdk sdk/base sdk/config sdk/cost host)
if(TARGET dsat-trial)
  list(APPEND header_parts trainer)
endif()
foreach(part IN LISTS header_parts)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${part}/include/dsat)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${part}/include/dsat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
            COMPONENT dev FILES_MATCHING PATTERN "*.h")
  endif()
endforeach()

foreach(plugin asha binary grid guided random profiler)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION ${DSAT_PLUGIN_DIR})
  endif()
endforeach()

# Manual pages and completions are made by the programs themselves.
find_program(DSAT_GZIP gzip)
foreach(pair dsat-host:runtime dsat-trial:trainer)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 program)
  list(GET pair 1 part)
  if(NOT TARGET ${program})
    continue()
  endif()
  install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${part})
  if(DSAT_SANITIZE)
    continue()  # a build does not depend on what a sanitizer says of LibTorch's end
  endif()
  set(manual ${PROJECT_BINARY_DIR}/manual/${program})
  set(page ${manual}.1.gz)
  set(commands "")
  foreach(shell bash zsh fish)
    list(APPEND commands COMMAND ${program} completion ${shell} > ${manual}.${shell})
  endforeach()
  add_custom_command(OUTPUT ${page} ${manual}.bash ${manual}.zsh ${manual}.fish
    COMMAND ${program} man | ${DSAT_GZIP} -9n > ${page} ${commands}
    DEPENDS ${program} COMMENT "The manual of ${program}")
  add_custom_target(${program}-manual ALL DEPENDS ${page})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/manual)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${part})
  install(FILES ${manual}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program}
          COMPONENT ${part})
  install(FILES ${manual}.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _${program}
          COMPONENT ${part})
  install(FILES ${manual}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME ${program}.fish
          COMPONENT ${part})
endforeach()
if(TARGET dsat-plugin-host)
  install(TARGETS dsat-plugin-host RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/dsat)
endif()
if(TARGET dsat-launch)
  install(TARGETS dsat-launch RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/dsat)
  install(FILES ${PROJECT_SOURCE_DIR}/host/probe/sitecustomize.py ${PROJECT_SOURCE_DIR}/host/probe/dsat_engine_probe.py
                ${PROJECT_SOURCE_DIR}/host/probe/dsat_inject.py
                ${PROJECT_SOURCE_DIR}/host/probe/dsat_pipeline.py
                ${PROJECT_SOURCE_DIR}/host/probe/dsat_step_probe.py
    DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/dsat/probe)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/sim/ DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/dsat/simulations)
endif()

# For training scripts: PYTHONPATH=<prefix>/share/dsat/python; the scripts that use it lie beside it.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sdk/python/dsat ${PROJECT_SOURCE_DIR}/sdk/python/determined DESTINATION ${CMAKE_INSTALL_DATADIR}/dsat/python
        PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/scripts DESTINATION ${CMAKE_INSTALL_DATADIR}/dsat/examples
        PATTERN __pycache__ EXCLUDE PATTERN dsat-results EXCLUDE)

# Editors check space files by it.
install(FILES ${PROJECT_SOURCE_DIR}/sdk/config/space.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/dsat)

# A static library's private dependencies are its user's to link: the package looks up those that dsat::host has.
set(DSAT_HOST_DEPENDENCIES "")
if(TARGET dsat::host)
  get_target_property(host_libraries dsat::host LINK_LIBRARIES)
  foreach(pair "Threads::Threads|Threads" "SQLite::SQLite3|SQLite3" "re2::re2|RE2"
               "Boost::|Boost CONFIG COMPONENTS filesystem" "dsat_yaml|yaml-cpp" "OpenSSL::|OpenSSL COMPONENTS Crypto")
    string(REPLACE "|" ";" pair ${pair})
    list(GET pair 0 library)
    list(GET pair 1 package)
    if("${host_libraries}" MATCHES "${library}")
      string(APPEND DSAT_HOST_DEPENDENCIES "  find_dependency(${package})\n")
    endif()
  endforeach()
endif()

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/dsatConfig.cmake.in ${PROJECT_BINARY_DIR}/package/dsatConfig.cmake
  INSTALL_DESTINATION ${DSAT_PACKAGE_DIR} PATH_VARS DSAT_PLUGIN_DIR DSAT_LAUNCHER DSAT_PLUGIN_HOST)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/dsatConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/package/dsatConfig.cmake
  ${PROJECT_BINARY_DIR}/package/dsatConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/DsatAddPlugin.cmake
  ${CMAKE_CURRENT_LIST_DIR}/DsatAddTrial.cmake
  ${CMAKE_CURRENT_LIST_DIR}/DsatFindTorch.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindRE2.cmake
  ${CMAKE_CURRENT_LIST_DIR}/dsat_plugin.map
  DESTINATION ${DSAT_PACKAGE_DIR} COMPONENT dev)
