# dsat_add_trial(NAME sources...)
#
# Builds lib<NAME>.so, a trial for `dsat-trial --trial`. It is compiled with the headers of dsat and LibTorch and links
# neither: dsat-trial brings them along, so that the library and the program that loads it have one LibTorch.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/DsatFindTorch.cmake)

function(dsat_add_trial name)
  dsat_find_torch(REQUIRED)
  add_library(${name} MODULE ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_17)
  target_include_directories(${name} SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  separate_arguments(flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(${name} PRIVATE ${flags})
  target_link_libraries(${name} PRIVATE dsat::trial)
  set_target_properties(${name} PROPERTIES PREFIX lib POSITION_INDEPENDENT_CODE ON)
endfunction()
