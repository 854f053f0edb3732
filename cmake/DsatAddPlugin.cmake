# dsat_add_plugin(NAME sources...)
#
# Builds lib<NAME>.so, a dsat plugin, into <build>/plugins. Only the ABI's entry point is exported: a library with
# default visibility stays mapped after it is unloaded, and an undefined symbol would show only when it is called.
include_guard(GLOBAL)
set(DSAT_PLUGIN_VERSION_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/dsat_plugin.map)

function(dsat_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE dsat::abi)
  set_target_properties(${name} PROPERTIES
    PREFIX lib
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins
    LINK_DEPENDS ${DSAT_PLUGIN_VERSION_SCRIPT})
  target_link_options(${name} PRIVATE -Wl,--version-script=${DSAT_PLUGIN_VERSION_SCRIPT})
  # A sanitizer's symbols come from the program that loads the plugin.
  if(NOT DSAT_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()
