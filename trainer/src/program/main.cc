// dsat-trial: hands its command line to dsat_trial(), which tests call after a fork.
#include <string>
#include <vector>

#include "program/dsat_trial.h"

int main(int argc, char** argv) { return dsat::trainer::dsat_trial({argv + 1, argv + argc}); }
