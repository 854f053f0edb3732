// dsat-trial, started.
#include <string>
#include <vector>

#include "program/dsat_trial.h"

int main(int argc, char** argv) { return dsat::trainer::dsat_trial({argv + 1, argv + argc}); }
