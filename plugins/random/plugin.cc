#include "random/random.h"

DSAT_PLUGIN(dsat::RandomSearch);
