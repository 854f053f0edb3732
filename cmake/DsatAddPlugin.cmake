# dsat_add_plugin(NAME sources...)
#
# Builds lib<NAME>.so, a dsat plugin, into <build>/plugins. Only the ABI's entry point is exported: a library with
# default visibility stays mapped after it is unloaded, and an undefined symbol would show only when it is called.
include_guard(GLOBAL)

function(dsat_add_plugin name)
  set(version_script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/dsat_plugin.map)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE dsat::abi)
  set_target_properties(${name} PROPERTIES
    PREFIX lib
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins
    LINK_DEPENDS ${version_script})
  target_link_options(${name} PRIVATE -Wl,--version-script=${version_script})
  # A sanitizer's symbols come from the program that loads the plugin.
  if(NOT DSAT_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()
