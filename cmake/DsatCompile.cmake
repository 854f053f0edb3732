# How every target of the project is compiled: C++17, warnings, sanitizers, ccache.
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(DSAT_CCACHE ccache)
if(DSAT_CCACHE)
  # Paths below the checkout are cached as relative ones: a second clone or build folder finds what the first compiled.
  set(DSAT_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DSAT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${DSAT_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DSAT_LAUNCHER})
endif()

if(DSAT_SANITIZE)
  add_compile_options(-fsanitize=${DSAT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DSAT_SANITIZE})
endif()

# Indices, iterators and preconditions of the standard library are checked wherever speed does not count.
if(DSAT_SANITIZE)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
else()
  add_compile_definitions($<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
endif()

if(DSAT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# With CMAKE_UNITY_BUILD, as the release preset has it, eight files of a target are compiled at a time (DsatGroups.cmake
# chooses them): their headers are read once and their templates made once, which halves the processor's time of a cold
# build. The debug preset compiles each file alone, and so finds an include that a file forgot. Where two unnamed
# namespaces of a target hold the same name, give one another name, or leave its file out of the groups:
# set_source_files_properties(FILE PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON).
if(CMAKE_UNITY_BUILD)
  # GCC takes the unnamed namespace of an included .cc for that of a header.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

# Links into our own targets only, so that no user of the installed package inherits our warnings.
add_library(dsat_warnings INTERFACE)
target_compile_options(dsat_warnings INTERFACE -Wall -Wextra -Wpedantic $<$<BOOL:${DSAT_WERROR}>:-Werror>)
