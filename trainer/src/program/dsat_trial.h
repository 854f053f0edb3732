// dsat-trial as a function: tests go on in it after a fork.
//
// Threading: the process's only thread; it sets what holds for the whole process, and ends it once there is training.
#ifndef DSAT_TRAINER_PROGRAM_DSAT_TRIAL_H_
#define DSAT_TRAINER_PROGRAM_DSAT_TRIAL_H_

#include <string>
#include <vector>

namespace dsat::trainer {

// `args`: its command line without the program's name. Returns the exit status where nothing is to be trained.
// Errors go to stderr.
int dsat_trial(const std::vector<std::string>& args);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PROGRAM_DSAT_TRIAL_H_
