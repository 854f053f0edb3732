// The entry point of librandom.so. It has a file of its own, because the tests link the class without it.
#include "random/random.h"

DSAT_PLUGIN(dsat::RandomSearch);
