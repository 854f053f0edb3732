# dsat_find_torch(arguments of find_package...)
#
# LibTorch's package file warns, wherever it is read, of an archive that a shared LibTorch does not need (kineto, which
# Debian 13 leaves out). Errors are shown.
include_guard(GLOBAL)

macro(dsat_find_torch)
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
  find_package(Torch ${ARGN})
  unset(CMAKE_MESSAGE_LOG_LEVEL)
endmacro()
