// The section `scheduler` of a DeepSpeed configuration.
//
// Errors: dsat::Error, one line that names the key. Threading: pure functions.
#ifndef DSAT_TRAINER_SETTINGS_SCHEDULE_SETTINGS_H_
#define DSAT_TRAINER_SETTINGS_SCHEDULE_SETTINGS_H_

#include <string>
#include <vector>

#include "dsat/error.h"
#include "optimizer/learning_rate.h"

namespace dsat::trainer {

// `constant`: the optimizer's lr, which warmup_max_lr "auto" and null stand for. `has_betas`: whether the optimizer has
// moments whose decay OneCycle can move.
ScheduleSettings read_schedule(const Json& config, double constant, bool has_betas);

// The keys of scheduler.params that the type has.
const std::vector<const char*>& schedule_keys(const Json& config);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_SCHEDULE_SETTINGS_H_
