// The entry point of libguided.so, by which the host finds the plugin.
// A file of its own: the tests link the class without it.
#include "guided/guided.h"

DSAT_PLUGIN(dsat::Guided);
