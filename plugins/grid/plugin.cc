#include "grid/grid.h"

DSAT_PLUGIN(dsat::Grid);
