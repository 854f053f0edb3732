#include "guided.h"

DSAT_PLUGIN(dsat::Guided);
