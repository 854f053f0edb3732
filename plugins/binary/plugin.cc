// The entry point of libbinary.so, by which the host finds the plugin.
// A file of its own: the tests link the class without it.
#include "binary/binary.h"

DSAT_PLUGIN(dsat::Binary);
