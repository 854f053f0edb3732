// The entry point of libasha.so, by which the host finds the plugin.
// A file of its own: the tests link the class without it.
#include "asha/asha.h"

DSAT_PLUGIN(dsat::Asha);
