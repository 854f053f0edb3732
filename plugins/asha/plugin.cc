#include "asha/asha.h"

DSAT_PLUGIN(dsat::Asha);
