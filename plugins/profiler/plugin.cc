// The entry point of libprofiler.so, by which the host finds the plugin.
// A file of its own: the tests link the class without it.
#include "profiler/profiler.h"

DSAT_PLUGIN(dsat::ModelProfiler);
