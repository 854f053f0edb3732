#include "binary/binary.h"

DSAT_PLUGIN(dsat::Binary);
