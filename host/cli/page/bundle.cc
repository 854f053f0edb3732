// The assembler includes the bundled file in the program. CMake names the file in DSAT_PAGE_FILE; without it the
// program has no bundle.
#include "page/bundle.h"

#ifdef DSAT_PAGE_FILE
asm(".section .rodata\n"
    ".global dsat_page_begin\n"
    ".global dsat_page_end\n"
    "dsat_page_begin:\n"
    ".incbin \"" DSAT_PAGE_FILE
    "\"\n"
    "dsat_page_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char dsat_page_begin[];
extern const char dsat_page_end[];
}
#endif

namespace dsat::cli {

std::string_view bundle() {
#ifdef DSAT_PAGE_FILE
  return {dsat_page_begin, static_cast<size_t>(dsat_page_end - dsat_page_begin)};
#else
  return {};
#endif
}

}  // namespace dsat::cli
