// The entry point of libbinary.so. It has a file of its own, because the tests link the class without it.
#include "binary/binary.h"

DSAT_PLUGIN(dsat::Binary);
