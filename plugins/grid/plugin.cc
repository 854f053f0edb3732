// The entry point of libgrid.so, by which the host finds the plugin.
// A file of its own: the tests link the class without it.
#include "grid/grid.h"

DSAT_PLUGIN(dsat::Grid);
