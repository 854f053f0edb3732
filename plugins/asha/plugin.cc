// The entry point of libasha.so. It has a file of its own, because the tests link the class without it.
#include "asha/asha.h"

DSAT_PLUGIN(dsat::Asha);
