#include "binary.h"

DSAT_PLUGIN(dsat::Binary);
