// Decides the outcome of a trial from its files, its exit, and what the host did to it.
// Threading: pure except for reading the trial's files. docs/trial.md has the rules and their order.
#ifndef DSAT_HOST_RUNNER_CLASSIFY_H_
#define DSAT_HOST_RUNNER_CLASSIFY_H_

#include "runner/run_facts.h"
#include "runner/runner.h"

namespace dsat::host {

// Reads the trial's result file and logs. Never fails: if a file cannot be read, the trial has failed for that reason.
TrialEnd classify(const RunFacts& facts);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_CLASSIFY_H_
