#include "random.h"

DSAT_PLUGIN(dsat::RandomSearch);
