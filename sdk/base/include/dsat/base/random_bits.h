// Numbers that nobody can guess. Threading: any thread. Errors: dsat::Error if the system gives none.
#ifndef DSAT_BASE_RANDOM_BITS_H_
#define DSAT_BASE_RANDOM_BITS_H_

#include <cstdint>

namespace dsat {

uint64_t random_bits();

}  // namespace dsat

#endif  // DSAT_BASE_RANDOM_BITS_H_
