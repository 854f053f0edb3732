#include "profiler.h"

DSAT_PLUGIN(dsat::ModelProfiler);
