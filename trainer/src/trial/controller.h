// Runs a trial: its training, validations, checkpoints and callbacks, as one rank.
//
// Threading: once in a process, collective. Errors: dsat::Error in one line; PeerLost; TuningDone when a tuning trial
// has been measured; whatever the trial throws.
#ifndef DSAT_TRAINER_TRIAL_CONTROLLER_H_
#define DSAT_TRAINER_TRIAL_CONTROLLER_H_

#include "settings/trial_options.h"
#include "trial/trial_library.h"

namespace dsat::trainer {

void run_trial(World& world, const TrialLibrary& library, const TrialOptions& options);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TRIAL_CONTROLLER_H_
