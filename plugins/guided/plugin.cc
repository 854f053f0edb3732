// The entry point of libguided.so. It has a file of its own, because the tests link the class without it.
#include "guided/guided.h"

DSAT_PLUGIN(dsat::Guided);
