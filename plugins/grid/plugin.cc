#include "grid.h"

DSAT_PLUGIN(dsat::Grid);
