#include "asha.h"

DSAT_PLUGIN(dsat::Asha);
