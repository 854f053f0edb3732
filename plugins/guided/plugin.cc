#include "guided/guided.h"

DSAT_PLUGIN(dsat::Guided);
