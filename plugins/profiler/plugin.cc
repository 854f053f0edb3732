// The entry point of libprofiler.so. It has a file of its own, because the tests link the class without it.
#include "profiler/profiler.h"

DSAT_PLUGIN(dsat::ModelProfiler);
