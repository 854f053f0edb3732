#include "profiler/profiler.h"

DSAT_PLUGIN(dsat::ModelProfiler);
