// std::random_device would do, but of the C library it needs what Debian 12 is the first to have.
#include "dsat/base/random_bits.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "dsat/error.h"

namespace dsat {

uint64_t random_bits() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) == sizeof bits) return bits;
  throw Error(DSAT_INTERNAL, std::string("the system gives no random numbers: ") + std::strerror(errno));
}

}  // namespace dsat
