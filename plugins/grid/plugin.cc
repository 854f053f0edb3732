// The entry point of libgrid.so. It has a file of its own, because the tests link the class without it.
#include "grid/grid.h"

DSAT_PLUGIN(dsat::Grid);
