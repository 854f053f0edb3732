// The entry point of librandom.so, by which the host finds the plugin.
// A file of its own: the tests link the class without it.
#include "random/random.h"

DSAT_PLUGIN(dsat::RandomSearch);
