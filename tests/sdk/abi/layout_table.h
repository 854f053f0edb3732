/* The layout of dsat/abi.h as a compiler sees it: of today's header, and of the header of each released minor, which
 * lies in tests/fixtures/abi as it was released and never changes. */
#ifndef DSAT_TESTS_LAYOUT_TABLE_H_
#define DSAT_TESTS_LAYOUT_TABLE_H_

#include <stddef.h>

struct layout_row {
  const char* member; /* "dsat_exit.reason"; NULL ends a table */
  size_t offset, size;
};

#if defined(__cplusplus)
extern "C" {
#endif
extern const struct layout_row layout_of_1_0[], layout_of_today[];
#if defined(__cplusplus)
}
#endif

#endif /* DSAT_TESTS_LAYOUT_TABLE_H_ */
