# With DSAT_PORTABLE programs and plugins need the C library alone, and the compiler's libgcc_s, which every system has:
# every other library is linked in from its archive. (The archive of libgcc needs a newer C library than ours does.)
# scripts/wheel builds so. Included before the packages are looked for.
option(DSAT_PORTABLE "Link everything but the C library and libgcc_s statically" OFF)
set(DSAT_FMT fmt::fmt)
if(DSAT_PORTABLE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(Boost_USE_STATIC_LIBS ON)
  set(OPENSSL_USE_STATIC_LIBS ON)
  set(DSAT_FMT fmt::fmt-header-only)  # Debian has no archive of it
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-static-libstdc++ -Wl,--wrap=hypot -Wl,--gc-sections -Wl,--exclude-libs,ALL)
endif()

# A package that names its shared library alone: its target gets the archive beside it.
function(dsat_use_archive target name)
  if(DSAT_PORTABLE)
    find_library(DSAT_ARCHIVE_${name} lib${name}.a REQUIRED)
    foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE IMPORTED_LOCATION_RELWITHDEBINFO)
      set_target_properties(${target} PROPERTIES ${property} ${DSAT_ARCHIVE_${name}})
    endforeach()
  endif()
endfunction()
